-- For a first write to the events stream, which fails when that is a stray key.
-- paste: types
if checked(recorded) == nil then error(wrong_type('stream', events)) end
