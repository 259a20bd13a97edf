-- When a session ends, and the bucket in which the sweeper finds it.

-- The minute of the bucket for an end. Rounded up as in Spring Session: an end on a full minute belongs to the next
-- one.
local function bucket_of(ends_at)
  return integer(math.floor((ends_at + 60000) / 60000) * 60000)
end

-- The same, or the nearest earlier minute when a foreign key stands in the way: a member may be early, never late.
local function bucket_to_join(ends_at)
  local minute = bucket_of(ends_at)
  while wrong_type({ { bucket_key(minute), 'set' } }) do minute = integer(tonumber(minute) - 60000) end
  return minute
end

local function join_bucket(session, minute)
  redis.call('SADD', bucket_key(minute), member_of(session.id))
  redis.call('ZADD', bucket_list, minute, minute)
  redis.call('HSET', session.key, 'bucket', minute)
  session.bucket = minute
end

-- Removes a minute from the bucket list only when its bucket no longer exists.
local function forget_empty_bucket(minute)
  if redis.call('EXISTS', bucket_key(minute)) == 0 then redis.call('ZREM', bucket_list, minute) end
end

local function leave_bucket(session)
  if not session.bucket then return end
  redis.call('SREM', bucket_key(session.bucket), member_of(session.id))
  forget_empty_bucket(session.bucket)
  session.bucket = nil
end

-- The end of a session whose idle timeout counts from `since`: {at, bucket}; nil when it never expires.
local function end_since(since, interval, absolute_expiry)
  local idle_end = interval >= 0 and since + interval * 1000 or nil
  local at = idle_end or absolute_expiry
  if idle_end and absolute_expiry then at = math.min(idle_end, absolute_expiry) end
  return at and { at = at, bucket = bucket_to_join(at) }
end

-- The recorded times that determine the end of a session.
local function recorded_times(session)
  local recorded = redis.call('HMGET', session.key,
    'creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry')
  return {
    creation = tonumber(recorded[1]),
    accessed = tonumber(recorded[2]),
    interval = tonumber(recorded[3]),
    absolute_expiry = tonumber(recorded[4]),
  }
end

-- When the absolute timeout, in seconds, ends a session; nil when there is none.
local function absolute_end(creation, timeout)
  return timeout >= 0 and creation + timeout * 1000 or nil
end

local function write_absolute_end(session, absolute_expiry)
  if absolute_expiry then redis.call('HSET', session.key, 'absoluteExpiry', integer(absolute_expiry))
  else redis.call('HDEL', session.key, 'absoluteExpiry') end
end

-- Sets the end of a live session, in milliseconds; an end in the past ends it now. The session hash outlives the shadow
-- key by the grace period, so that the end can be announced with the data. A member may be early, never late, so it
-- changes its bucket only when the new end is before the minute, or when the minute has passed without a sweep.
local function set_end(session, new_end, now)
  if not new_end then
    redis.call('PERSIST', session.shadow)
    redis.call('PERSIST', session.key)
    leave_bucket(session)
    redis.call('HDEL', session.key, 'bucket')
    return
  end
  redis.call('PEXPIREAT', session.shadow, integer(new_end.at))
  redis.call('PEXPIREAT', session.key, integer(new_end.at + grace))
  local standing = tonumber(session.bucket)
  if standing and standing > now and standing <= tonumber(new_end.bucket) then return end
  leave_bucket(session)
  join_bucket(session, new_end.bucket)
end

-- Records an access. The time of the last access never goes back: a slow request must not undo a later one.
local function renew(session, new_end, now)
  local last = tonumber(redis.call('HGET', session.key, 'lastAccessedTime'))
  if not last or last < now then redis.call('HSET', session.key, 'lastAccessedTime', integer(now)) end
  set_end(session, new_end, now)
end
