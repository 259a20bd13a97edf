-- Which session an id stands for, what belongs to it, and how it ends.

-- The live session of an id: the session itself, or the one it has become under another id; nil when it is over.
-- The chain of forwarding marks that live at a time is short; the bound keeps a planted circle from turning for ever.
local function live_session(session)
  for _ = 1, 16 do
    if redis.call('EXISTS', session.shadow) == 1 then
      if redis.call('EXISTS', session.key) == 1 then return session end
      -- A shadow without a session is none, and completing it would bring back half of one. It must not stay either:
      -- the sweeper then reports what it stood for.
      redis.call('DEL', session.shadow)
      return nil
    end
    local new_id = redis.call('GET', forwarding_mark(session.id))
    if not new_id then return nil end
    session = session_of(new_id)
  end
  return nil
end

-- The exact index entries that are recorded in a session, a list of {name, value}; stored as JSON in a JSON string,
-- since Spring decodes every field and may be given no array. A field that somebody else wrote must not stop the
-- session's end.
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

-- The {key, type} of what all sessions share.
local function shared_keys()
  return { { bucket_list, 'zset' }, { events, 'stream' } }
end

-- The {key, type} of a session's own, and how the key is shown: an id may be the token itself, and errors are logged.
local function keys_of(session)
  local shown = session_of('...')
  return { { session.key, 'hash', shown.key }, { session.shadow, 'string', shown.shadow } }
end

-- Reads in which bucket and in which indexes a session stands: `bucket` and `entries` are where it really does, whatever
-- is recorded. A foreign key in the place of a set, which `foreign` tells, stops neither its renewal nor its end.
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

-- Ends a session that was located: nothing finds it any more, its data stays for the handlers of the event. The interval
-- of 0 is what Spring Session, which never looks at the shadow, takes for the end.
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
