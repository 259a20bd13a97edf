-- Which session an id stands for, what belongs to it, and how it ends.

-- The live session of an id, or the one that its forwarding marks lead to; nil when there is none. A chain of marks is
-- short: each lives for 60 s. The limit stops a planted circle.
local function live_session(session)
  for _ = 1, 16 do
    if redis.call('EXISTS', session.shadow) == 1 then
      if redis.call('EXISTS', session.key) == 1 then return session end
      -- A shadow key without its session hash is no session, and must not become half of one. Without the shadow key
      -- the sweeper reports the end, with the data lost.
      redis.call('DEL', session.shadow)
      return nil
    end
    local new_id = redis.call('GET', forwarding_mark(session.id))
    if not new_id then return nil end
    session = session_of(new_id)
  end
  return nil
end

-- The index entries that a session hash records, a list of {name, value}. They are JSON in a JSON string: Spring
-- decodes every field and cannot read an array. A field that somebody else wrote must not prevent the end of the
-- session.
local function memberships(session)
  local field = redis.call('HGET', session.key, 'index')
  local readable, decoded = pcall(function() return cjson.decode(cjson.decode(field)) end)
  local entries = {}
  for _, entry in ipairs(readable and type(decoded) == 'table' and decoded or {}) do
    local is_entry = type(entry) == 'table' and type(entry[1]) == 'string' and type(entry[2]) == 'string'
    if is_entry then table.insert(entries, { entry[1], entry[2] }) end
  end
  return entries
end

-- The {key, type} of the keys that all sessions share.
local function shared_keys()
  return { { bucket_list, 'zset' }, { events, 'stream' } }
end

-- The {key, type, name in an error} of a session's own keys. Errors are logged and an id may be a token, so the name
-- has no id.
local function keys_of(session)
  local shown = session_of('...')
  return { { session.key, 'hash', shown.key }, { session.shadow, 'string', shown.shadow } }
end

-- Reads where a session is: `bucket` when the recorded bucket really has the member, and `entries`, its index entries.
-- A foreign key in the place of an index is skipped and noted in `foreign`: it prevents neither a renewal nor the end.
local function locate(session)
  local minute = redis.call('HGET', session.key, 'bucket')
  local is_set = minute and tonumber(minute) and not wrong_type({ { bucket_key(minute), 'set' } })
  local stands = is_set and redis.call('SISMEMBER', bucket_key(minute), member_of(session.id)) == 1
  session.bucket = stands and minute or nil
  session.entries = {}
  for _, entry in ipairs(memberships(session)) do
    local problem = wrong_type({ index_set(entry[1], entry[2]) })
    if problem then session.foreign = problem else table.insert(session.entries, entry) end
  end
end

-- Ends a located session. Nothing finds it any more; its data stays for the handlers of the event. Spring Session never
-- looks at the shadow key: for it, an interval of 0 is the end.
local function end_session(session, how, now)
  for _, entry in ipairs(session.entries) do
    redis.call('SREM', index_key(entry[1], entry[2]), session.id)
  end
  leave_bucket(session)
  redis.call('DEL', session.shadow)
  redis.call('HSET', session.key, 'ended', cjson.encode(how), 'maxInactiveInterval', 0)
  redis.call('HDEL', session.key, 'bucket', 'index')
  redis.call('PEXPIRE', session.key, math.max(retention, grace))
  record(how, session.id, now)
end
