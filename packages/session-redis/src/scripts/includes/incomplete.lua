-- For a session hash that lacks a field which every session has.
-- paste: types
if not checked(fields) then error(wrong_type('hash', key, id)) end
if redis.call('EXISTS', key) == 0 then
  -- A shadow key without its session hash is no session, and must not become half of one. Without the shadow key the
  -- sweeper reports the end, with the data lost.
  redis.call('DEL', shadow)
  return { 'gone' }
end
