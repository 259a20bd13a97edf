#!lua flags=allow-oom
--[[
  renew-session: does to a session of Spring Session what a request of Spring does that changes nothing in it.

  KEYS[1] session hash
  KEYS[2] shadow key
  KEYS[3] sorted set of expirations
  ARGV[1] prefix of the namespace's keys
  ARGV[2] id

  On a Cluster without KEYS[2] and KEYS[3], for a session of the simple repository: it has no other key.

  Returns
    {'touched'}
    {'gone'}        there is no live session
    {'unreadable'}  and the time in a form that Spring does not write
]]
-- include: clock, keys, digits, spring-bucket, spring-forms
local session, shadow, expirations, prefix, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local TIMES, KINDS = { 'creationTime', 'lastAccessedTime', 'maxInactiveInterval' }, { LONG, LONG, INTEGER }
local EXPIRED_FIELD = 'sessionAttr:org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED'

-- Where the indexed repository has the session; nil for one of the simple repository. `form`: a field of the session.
local function place_of(form, former_end, ends_at, now)
  local member, listed = as_spring_text('expires:' .. id, form), as_spring_text(id, form)
  local from, to, mark = spring_bucket(prefix, former_end), spring_bucket(prefix, ends_at), read('GET', shadow)
  if mark == nil then error(wrong_type('string', shadow, id)) end
  local is_in_bucket, score = read('SISMEMBER', from, member) == 1, read('ZSCORE', expirations, listed)
  -- Its session hash outlives it, also where its other keys are lost.
  local outlives = now + redis.call('PTTL', session) > former_end + SPRING_GRACE / 2
  if not (mark or is_in_bucket or score or outlives) then return nil end
  -- A member that is in neither is in the one that other sessions have.
  local is_in_set = score or not is_in_bucket and (read('ZCARD', expirations) or 0) > 0
  local place = { has_shadow = mark, listed = is_in_set and listed }
  if is_in_set and not is_in_bucket then return place end
  read_typed('set', 'SISMEMBER', to, member)
  place.member, place.bucket, place.former = member, to, is_in_bucket and from ~= to and from
  return place
end

local function renew_indexed(place, ends_at, interval)
  if place.has_shadow then
    redis.call('PEXPIRE', shadow, interval)
  else
    redis.call('SET', shadow, '', 'PX', interval)
  end
  redis.call('PEXPIRE', session, interval + SPRING_GRACE)
  if place.listed then redis.call('ZADD', expirations, ends_at, place.listed) end
  if not place.bucket then return end
  if place.former then redis.call('SREM', place.former, place.member) end
  redis.call('SADD', place.bucket, place.member)
  redis.call('PEXPIRE', place.bucket, interval + SPRING_GRACE)
end

local fields, times = read('HMGET', session, TIMES[1], TIMES[2], TIMES[3], EXPIRED_FIELD), {}
for i, name in ipairs(TIMES) do
  -- An incomplete session hash is one that a late request has written again.
  if not fields or not fields[i] or fields[i] == '' then return { 'gone' } end
  times[i] = spring_number(fields[i], KINDS[i])
  if not times[i] then return { 'unreadable', name } end
end

if is_spring_true(fields[4]) then return { 'gone' } end

local now, form, accessed, interval = now_in_ms(), fields[2], times[2], times[3] * 1000
if interval == 0 or interval > 0 and accessed + interval <= now then return { 'gone' } end
-- The clock of an application may be ahead.
local accessed_now = math.max(accessed, now)
local ends_at = accessed_now + interval
local place = interval > 0 and shadow and place_of(form, accessed + interval, ends_at, now)
redis.call('HSET', session, 'lastAccessedTime', as_spring_long(accessed_now, form))
-- One that never ends keeps the times to live that Spring has given it.
if interval < 0 then return { 'touched' } end
if place then renew_indexed(place, ends_at, interval) else redis.call('PEXPIREAT', session, digits(ends_at)) end
return { 'touched' }
