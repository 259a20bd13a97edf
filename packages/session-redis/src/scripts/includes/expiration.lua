-- When a session ends, and the bucket in which the sweeper finds it then.

local function member_of(session)
  return 'expires:' .. session.id
end

-- The minute in whose bucket a session belongs that ends then: rounded up as Spring Session does it, so that a session
-- which ends on the full minute belongs to the next one.
local function bucket_of(ends_at)
  return integer(math.floor((ends_at + 60000) / 60000) * 60000)
end

local function join_bucket(session, minute)
  redis.call('SADD', bucket_key(minute), member_of(session))
  redis.call('ZADD', bucket_list, minute, minute)
  redis.call('HSET', session.key, 'bucket', minute)
end

-- A minute leaves the list only where its set is seen to be gone.
local function forget_empty_bucket(minute)
  if redis.call('EXISTS', bucket_key(minute)) == 0 then redis.call('ZREM', bucket_list, minute) end
end

local function leave_bucket(member, minute)
  local removed = redis.call('SREM', bucket_key(minute), member)
  forget_empty_bucket(minute)
  return removed
end

-- Milliseconds from now to the end of a session that is renewed now; nil when it has no end.
local function time_to_live(interval, absolute_expiry, now)
  local idle = interval >= 0 and interval * 1000 or nil
  local rest = absolute_expiry and math.max(absolute_expiry - now, 1)
  if idle and rest then return math.min(idle, rest) end
  return idle or rest
end

-- Sets the end of a live session. The member in a bucket may be early, never late: it is moved only when the new end
-- comes before its minute, or when its minute is past because no sweeper was there.
local function set_end(session, ttl, now)
  local recorded = redis.call('HGET', session.key, 'bucket')
  if not ttl then
    redis.call('PERSIST', session.shadow)
    redis.call('PERSIST', session.key)
    if recorded then
      leave_bucket(member_of(session), recorded)
      redis.call('HDEL', session.key, 'bucket')
    end
    return
  end
  redis.call('PEXPIRE', session.shadow, integer(ttl))
  redis.call('PEXPIRE', session.key, integer(ttl + grace))
  local minute = bucket_of(now + ttl)
  if recorded and tonumber(minute) >= tonumber(recorded) and tonumber(recorded) > now then return end
  if recorded and recorded ~= minute then leave_bucket(member_of(session), recorded) end
  join_bucket(session, minute)
end

-- The end of a live session that is accessed now, from what is recorded; `interval` replaces the recorded one.
local function end_when_renewed(session, now, interval)
  local recorded = redis.call('HMGET', session.key, 'maxInactiveInterval', 'absoluteExpiry')
  return time_to_live(interval or tonumber(recorded[1]), tonumber(recorded[2]), now)
end

-- Records an access. The time never goes back: a slow script must not undo a later one.
local function renew(session, ttl, now)
  local last = tonumber(redis.call('HGET', session.key, 'lastAccessedTime'))
  if not last or last < now then redis.call('HSET', session.key, 'lastAccessedTime', integer(now)) end
  set_end(session, ttl, now)
end
