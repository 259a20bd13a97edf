#!lua flags=allow-oom
--[[
  look-at-shared-sessions: looks how sessions stand that Spring may have changed, and records what nobody has recorded yet: that they were
  created, got another id, or have ended. Whoever looks first records it.

  KEYS[1] events stream
  ARGV[1] what Spring's keys begin with
  ARGV[2] what ours begin with
  ARGV[3] how many sessions at most that are due by our list; 0: only those that are named here
  ARGV[4..] id of each session, and what was heard of it: `created`; `was <former id>`; or nothing

  Returns ms until the next one of our list is due, empty when there is none; and for each session its id and a word
    'alive'       it is known, or was there before we were
    'created'     this call has recorded its creation
    'id-changed'  this call has recorded that it got the id
    'claimed'     this call has recorded its end
    'already'     its end was recorded before, or there is no session
]]
-- include: clock, arguments, shared-session, shared-end
local place = { prefix = ARGV[1], own = ARGV[2], events = KEYS[1] }
local most, named, now = tonumber(ARGV[3]), part_of(ARGV, 4, #ARGV), now_in_ms()
local ends = place.own .. 'ends'
-- A creation that was not heard of is recorded until then, in ms. An older session may have had another id.
local NEW = 120000

-- When a live session is over; nil when it is. An application of Spring may have another clock, so its shadow key has a say.
local function next_look(session)
  if session.interval == 0 then return nil end
  local ends_at = math.max(end_of(session) or now + DAY, redis.call('PEXPIRETIME', session.shadow) + 1)
  return ends_at > now and ends_at or nil
end

local function look_at_live(session, heard, ends_at)
  local score, former = redis.call('ZSCORE', ends, session.id), string.match(heard, '^was (.+)$')
  local was_known = former and redis.call('ZREM', ends, former) == 1
  redis.call('ZADD', ends, ends_at, session.id)
  if was_known and not score then
    record_shared(place, 'id-changed', session, now, 'previous', former)
    return 'id-changed'
  end
  if score or heard ~= 'created' and now - session.created_at > NEW then return 'alive' end
  record_shared(place, 'created', session, session.created_at)
  return 'created'
end

local function look_at(id, heard)
  local session = stored_session(place, id)
  local ends_at = session and next_look(session)
  if ends_at then return look_at_live(session, heard, ends_at) end
  local score, was_recorded = redis.call('ZSCORE', ends, id), redis.call('EXISTS', place.own .. 'sessions:ended:' .. id) == 1
  -- It has got another id, of which somebody else will tell.
  if not session and score and tonumber(score) > now then return 'already' end
  redis.call('ZREM', ends, id)
  if was_recorded then return 'already' end
  if session then
    if session.interval == 0 then record_end(place, session, 'deleted', 'invalidated', now) else record_end(place, session, 'expired', '', now) end
    return 'claimed'
  end
  -- Spring keeps for some time what has ended. What is gone sooner has got another id.
  if not score or score + SPRING_GRACE > now then return 'already' end
  record(place, 'expired', id, digits(now), 'data', '{}')
  return 'claimed'
end

read_typed('stream', 'XLEN', place.events)
read_typed('zset', 'ZCARD', ends)
local reply = { '' }
for i = 1, #named, 2 do
  table.insert(reply, named[i])
  table.insert(reply, look_at(named[i], named[i + 1]))
end
if most > 0 then
  for _, id in ipairs(redis.call('ZRANGE', ends, '-inf', digits(now), 'BYSCORE', 'LIMIT', 0, most)) do
    table.insert(reply, id)
    table.insert(reply, look_at(id, ''))
  end
end
local earliest = redis.call('ZRANGE', ends, 0, 0, 'WITHSCORES')[2]
if earliest then reply[1] = math.max(0, earliest - now) end
return reply
