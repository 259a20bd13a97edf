-- For an event that could not be recorded.
-- include: types
if checked(recorded) == nil then error(wrong_type('stream', events)) end
