-- include: record, wanted, digits, shared-session
-- Events of sessions that are shared with Spring. Each has its data, because the session hash is not ours to keep.

-- The fields of a session as JSON. Times are bare numbers. What Spring has emptied is no attribute.
local function data_of_session(place, session)
  local fields, data = redis.call('HGETALL', session.key), {}
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 12) == 'sessionAttr:' and fields[i + 1] ~= '' then data[fields[i]] = fields[i + 1] end
  end
  data.creationTime, data.lastAccessedTime = digits(session.created_at), digits(session.accessed)
  data.maxInactiveInterval = digits(session.interval)
  -- It counts for who signed in then.
  local at, name = string.match(redis.call('GET', place.own .. 'sessions:signed-in:' .. session.id) or '', '^(%d+) (.*)$')
  if at and name == (session.principal or session.signed_in or '') then data.authenticatedAt = at end
  return cjson.encode(data)
end

-- Records an event with more fields. Nothing is recorded of what happens at the beginning of a session and nobody
-- wants. `place.omits_data`: it is to have none.
local function record_shared(place, kind, session, at, ...)
  local has_readers = is_wanted(place.events, kind)
  if not has_readers and (kind == 'created' or kind == 'signed-in') then return end
  record(place, kind, session.id, at, 'data', has_readers and not place.omits_data and data_of_session(place, session) or '{}', ...)
end

-- A creation that nobody has heard of is recorded so long, in ms. An older session may have had another id.
local NEW = 120000

-- After so many ms, nobody will hear of it any more.
local PATIENCE = 5000

-- Notes that the beginning of an id is still to be recorded, by whoever hears whether Spring has created the session or
-- changed its id: a change of ours was faster.
local function await_beginning(place, session, now)
  if redis.call('ZSCORE', place.own .. 'ends', session.id) or now - session.created_at > NEW then return end
  redis.call('ZADD', place.own .. 'awaited', now + PATIENCE, session.id)
end
