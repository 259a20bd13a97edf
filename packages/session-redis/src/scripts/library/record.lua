-- include: signal
-- Records an event of a session, with one more field if it has a value. As the first write of a script it needs no read before:
-- it fails when the events stream is a stray key.
local function record(events, kind, id, at, field, value)
  local recorded = value and redis.pcall('XADD', events, '*', 'type', kind, 'session', id, 'at', at, field, value)
    or redis.pcall('XADD', events, '*', 'type', kind, 'session', id, 'at', at)
  if type(recorded) == 'table' then
    -- include: keys
    if checked(recorded) == nil then error(wrong_type('stream', events)) end
  end
  signal(events, 'events')
end
