#!lua flags=allow-oom
--[[
  look-at-shared-sessions: looks how sessions stand that Spring may have changed, and records what nobody has recorded yet: that they were
  created, got another id, or have ended. The first call that looks records it.

  KEYS[1] events stream
  ARGV[1] what Spring's keys begin with
  ARGV[2] what ours begin with
  ARGV[3] how many sessions at most that are due by our list; 0: only those that are named here
  ARGV[4..] id of each session, what was heard of it (`created`; `was <former id>`; `over`, when its shadow key
           is gone; or nothing), and the id that it has by now

  Returns ms until the next one of our list is due, empty when there is none; a word for each session that is named; and the id
  of each session that is due, with its word
    'alive'       it is known, or was there before we were
    'created'     this call has recorded its creation
    'id-changed'  this call has recorded that it got the id
    'claimed'     this call has recorded its end, and perhaps its creation as well
    'already'     the end of the id was recorded before, or nobody knows of it
    'unknown'     it is heard of before what was before it, under an id that it has no more, or while Spring is ending it
]]
-- include: clock, arguments, shared-session, shared-end
local place = { prefix = ARGV[1], own = ARGV[2], events = KEYS[1] }
local most, named, now = tonumber(ARGV[3]), part_of(ARGV, 4, #ARGV), now_in_ms()
local ends, awaited = place.own .. 'ends', place.own .. 'awaited'

-- When a live session is over; nil when it is. An application of Spring may have another clock, so its shadow key has a
-- say.
local function next_look(session)
  if session.interval == 0 then return nil end
  local ends_at = math.max(end_of(session) or now + DAY, redis.call('PEXPIRETIME', session.shadow) + 1)
  return ends_at > now and ends_at or nil
end

-- The session of an id. One that another serializer has written is none here, and holds up nobody else.
local function readable_session(id)
  local is_readable, session = pcall(stored_session, place, id)
  return is_readable and session or nil
end

-- Records how an id began. `former`: the one before, if it is known.
local function begin(session, former)
  if former then
    redis.call('SET', place.own .. 'sessions:ended:' .. former, '', 'PX', DAY)
    record_shared(place, 'id-changed', session, now, 'previous', former)
    return 'id-changed'
  end
  record_shared(place, 'created', session, session.created_at)
  return 'created'
end

-- How an id stands that nobody knew: what is heard of it, or its age, tells whether it is a new session.
local function look_at_unknown(session, heard)
  local former = string.match(heard, '^was (.+)$')
  if former and redis.call('ZREM', ends, former) == 0 then return 'unknown' end
  local is_new = former or heard == 'created' or now - session.created_at <= NEW
  return is_new and begin(session, former) or 'alive'
end

-- Records the beginning of an id that one of our changes has met before.
local function look_at_awaited(session, id, heard)
  session = session or { id = id, key = '', created_at = now, accessed = now, interval = 0 }
  session.id = id
  local outcome = look_at_unknown(session, heard)
  if outcome ~= 'unknown' then redis.call('ZREM', awaited, id) end
  return outcome
end

-- How an id stands that no session has.
local function look_at_nobody(id, is_beginning, score)
  if not score then return is_beginning and 'unknown' or 'already' end
  -- It has got another id, of which somebody else will tell.
  if tonumber(score) > now then return 'already' end
  redis.call('ZREM', ends, id)
  -- Spring keeps for some time what has ended. What is gone sooner has got another id.
  if score + SPRING_GRACE > now then return 'already' end
  record(place, 'expired', id, digits(now), 'data', '{}')
  return 'claimed'
end

local function look_at(id, heard, source)
  local own, score, session = place.own .. 'sessions:', redis.call('ZSCORE', ends, id), readable_session(source)
  local is_beginning = heard ~= '' and heard ~= 'over'
  if is_beginning and redis.call('ZSCORE', awaited, id) then return look_at_awaited(session, id, heard) end
  if redis.call('EXISTS', own .. 'ended:' .. id, own .. 'forwarded:' .. id) > 0 then
    redis.call('ZREM', ends, id)
    return 'already'
  end
  if not session then return look_at_nobody(id, is_beginning, score) end
  local outcome, ends_at = 'alive', next_look(session)
  if source ~= id then
    if score or not is_beginning then return 'already' end
    -- The call for its next id finds it here, even where the session is over by now.
    session.id, ends_at = id, ends_at or now + PATIENCE
  end
  if not score then outcome = look_at_unknown(session, heard) end
  if outcome == 'unknown' then return outcome end
  if ends_at then
    redis.call('ZADD', ends, ends_at, id)
    -- Spring deletes the shadow key first.
    return heard == 'over' and redis.call('EXISTS', session.shadow) == 0 and 'unknown' or outcome
  end
  if session.interval == 0 then
    record_end(place, session, 'deleted', 'invalidated', now)
  else
    record_end(place, session, 'expired', '', now)
  end
  return 'claimed'
end

-- The ids that are due in a sorted set.
local function due_in(set) return redis.call('ZRANGE', set, '-inf', digits(now), 'BYSCORE', 'LIMIT', 0, most) end

read_typed('stream', 'XLEN', place.events)
read_typed('zset', 'ZCARD', ends)
read_typed('zset', 'ZCARD', awaited)
local reply = { '' }
for i = 1, #named, 3 do table.insert(reply, look_at(named[i], named[i + 1], named[i + 2])) end
for _, id in ipairs(most > 0 and due_in(ends) or {}) do
  table.insert(reply, id)
  table.insert(reply, look_at(id, '', id))
end
for _, id in ipairs(most > 0 and due_in(awaited) or {}) do
  local mark = redis.call('GET', place.own .. 'sessions:forwarded:' .. id)
  look_at_awaited(readable_session(mark and target_of(mark) or id), id, 'created')
end
for _, set in ipairs({ ends, awaited }) do
  local earliest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  local left = earliest and math.max(0, earliest - now)
  if left and (reply[1] == '' or left < reply[1]) then reply[1] = left end
end
return reply
