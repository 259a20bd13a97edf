-- Which session an id stands for, what belongs to it, and how it ends.

-- The live session of an id: the session itself, or the one it has become under another id; nil when it is over.
-- A chain of moves within the life of the marks is short; the bound only keeps a planted circle from turning for ever.
local function live_session(session)
  for _ = 1, 16 do
    if redis.call('EXISTS', session.shadow) == 1 then
      if redis.call('EXISTS', session.key) == 1 then return session end
      -- A shadow without a session is none, and completing it would bring back half of one. It must not stay either:
      -- the sweeper then reports what it stood for.
      redis.call('DEL', session.shadow)
      return nil
    end
    local moved_to = redis.call('GET', moved_key(session.id))
    if not moved_to then return nil end
    session = session_of(moved_to)
  end
  return nil
end

-- The exact index entries of a session, a list of {name, value}; stored as JSON in a JSON string, since Spring
-- decodes every field and may be given no array. A field that somebody else wrote must not stop the session's end.
local function memberships(session)
  local field = redis.call('HGET', session.key, 'index')
  if not field then return {} end
  local readable, entries = pcall(function() return cjson.decode(cjson.decode(field)) end)
  return readable and type(entries) == 'table' and entries or {}
end

-- The {key, type} of what all sessions share.
local function shared_keys()
  return { { bucket_list, 'zset' }, { events, 'stream' } }
end

-- Every {key, type} of its own that ending or moving the session writes.
local function keys_of(session)
  local keys = { { session.key, 'hash' }, { session.shadow, 'string' } }
  if redis.call('TYPE', session.key).ok ~= 'hash' then return keys end
  local bucket = redis.call('HGET', session.key, 'bucket')
  if bucket then table.insert(keys, { bucket_key(bucket), 'set' }) end
  for _, entry in ipairs(memberships(session)) do
    table.insert(keys, index_set(entry[1], entry[2]))
  end
  return keys
end

-- Ends a session whose hash is there: nothing finds it any more, its data stays for the handlers of the event. The
-- interval of 0 is what Spring Session, which never looks at the shadow, takes for the end.
local function end_session(session, how, now)
  for _, entry in ipairs(memberships(session)) do
    redis.call('SREM', index_key(entry[1], entry[2]), session.id)
  end
  local bucket = redis.call('HGET', session.key, 'bucket')
  if bucket then leave_bucket(member_of(session), bucket) end
  redis.call('DEL', session.shadow)
  redis.call('HSET', session.key, 'ended', cjson.encode(how), 'maxInactiveInterval', 0)
  redis.call('HDEL', session.key, 'bucket', 'index')
  redis.call('PEXPIRE', session.key, math.max(retention, grace))
  record(how, session.id, now)
end
