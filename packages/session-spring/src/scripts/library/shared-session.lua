-- include: keys, forwarding-marks
-- Sessions as the indexed repository of Spring Session keeps them, in JSON. `place` says where: what the keys of Spring
-- begin with (`prefix`), what ours beside them begin with (`own`), the events stream (`events`), and the `trace`.
local PRINCIPAL_FIELD = 'sessionAttr:org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME'
local EXPIRED_FIELD = 'sessionAttr:org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED'

-- An integer, with its class or without; nil for anything else.
local function integer_in(json)
  return tonumber(json and (string.match(json, '^%-?%d+$') or string.match(json, '^%["java%.lang%.%a+",(%-?%d+)%]$')) or nil)
end

-- Whether it is true, with its class or without.
local function is_true(json) return json == 'true' or json == '["java.lang.Boolean",true]' end

-- A text in JSON; nil for anything else.
local function text_in(json)
  if not json or json == '' then return nil end
  local is_json, text = pcall(cjson.decode, json)
  return is_json and type(text) == 'string' and text or nil
end

-- The session of an id, alive or not; nil when there is none, or no whole one: a request of Spring that ends after its
-- session writes some fields of it again. Raises an error when another serializer has written it.
local function stored_session(place, id)
  local key = place.prefix .. 'sessions:' .. id
  local fields = read('HMGET', key, 'creationTime', 'lastAccessedTime', 'maxInactiveInterval', PRINCIPAL_FIELD, EXPIRED_FIELD)
  if not fields or not (fields[1] and fields[2] and fields[3]) then return nil end
  local session = {
    id = id, key = key, shadow = place.prefix .. 'sessions:expires:' .. id, created_at = integer_in(fields[1]),
    accessed = integer_in(fields[2]), interval = integer_in(fields[3]), principal = text_in(fields[4]),
    is_expired = is_true(fields[5]),
  }
  if not (session.created_at and session.accessed and session.interval) then
    error(redis.error_reply('NOJSON a session is not stored as JSON'))
  end
  -- The name of a user who signed in here, and whom nothing but a context of Spring Security names.
  local has_context = not session.principal and redis.call('HSTRLEN', key, 'sessionAttr:SPRING_SECURITY_CONTEXT') > 0
  local beside = has_context and read('GET', place.own .. 'sessions:signed-in:' .. id)
  session.signed_in = beside and string.match(beside, '^%d+ (.+)$')
  return session
end

-- When a session ends, in epoch ms; nil: never.
local function end_of(session) return session.interval >= 0 and session.accessed + session.interval * 1000 or nil end

-- Whether a request of Spring would go on with it. An interval of 0 is how Spring marks the end.
local function is_alive(session, now)
  local ends_at = end_of(session)
  return session.interval ~= 0 and not session.is_expired and (not ends_at or ends_at > now)
end

-- The live session of an id, or the later one to which our forwarding marks lead, with the rules of the sign-ins on the
-- way (`seals`); nil when there is none, and then the word of the mark that leads nowhere, if there was one.
-- `counts_expired`: also one that Spring Security has expired, which is still there.
local function live_shared(place, id, now, counts_expired)
  local seals = {}
  for _ = 1, MOST_MARKS do
    local session = stored_session(place, id)
    if session then
      session.seals = seals
      if counts_expired then session.is_expired = false end
      return is_alive(session, now) and session or nil
    end
    local mark = redis.call('GET', place.own .. 'sessions:forwarded:' .. id)
    if not mark or word_of(mark) then return nil, mark and word_of(mark) end
    id = target_of(mark)
    if id ~= mark then table.insert(seals, string.sub(mark, #id + 2)) end
  end
  return nil
end
