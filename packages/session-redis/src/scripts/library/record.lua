-- include: signal
-- Records an event of a session, with more fields. As the first write of a script it fails when the stream is a stray key.
local function record(partition, kind, id, at, ...)
  local events, trace = partition.events, partition.trace
  local recorded = trace and redis.pcall('XADD', events, '*', 'type', kind, 'session', id, 'at', at, 'traceparent', trace, ...)
    or redis.pcall('XADD', events, '*', 'type', kind, 'session', id, 'at', at, ...)
  if type(recorded) == 'table' then
    -- include: keys
    if checked(recorded) == nil then error(wrong_type('stream', events)) end
  end
  signal(events, 'events')
end
