-- When a session ends, and the bucket in which the sweeper finds it then.

-- The minute in whose bucket a session belongs that ends then: rounded up as Spring Session does it, so that a session
-- which ends on the full minute belongs to the next one.
local function bucket_of(ends_at)
  return integer(math.floor((ends_at + 60000) / 60000) * 60000)
end

-- The same, or the next earlier minute without a foreign key in the place of its bucket: a member may be early.
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

-- A minute leaves the list only where its set is seen to be gone.
local function forget_empty_bucket(minute)
  if redis.call('EXISTS', bucket_key(minute)) == 0 then redis.call('ZREM', bucket_list, minute) end
end

local function leave_bucket(session)
  if not session.bucket then return end
  redis.call('SREM', bucket_key(session.bucket), member_of(session.id))
  forget_empty_bucket(session.bucket)
  session.bucket = nil
end

-- The end of a session that was last renewed at `since`: when that is, and the bucket for it; nil when it has no end.
local function end_since(since, interval, absolute_expiry)
  local idle_end = interval >= 0 and since + interval * 1000 or nil
  local at = idle_end and absolute_expiry and math.min(idle_end, absolute_expiry) or idle_end or absolute_expiry
  return at and { at = at, bucket = bucket_to_join(at) }
end

-- The times from which the end of a stored session follows.
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

-- When a session ends however much it is used; nil without an absolute timeout, which is in seconds.
local function absolute_end(creation, timeout)
  return timeout >= 0 and creation + timeout * 1000 or nil
end

local function write_absolute_end(session, absolute_expiry)
  if absolute_expiry then redis.call('HSET', session.key, 'absoluteExpiry', integer(absolute_expiry))
  else redis.call('HDEL', session.key, 'absoluteExpiry') end
end

-- Sets the end of a live session, to the millisecond; an end in the past ends it now. The member in a bucket may be
-- early, never late: it moves only when the new end comes before its minute, or when that minute has passed because no
-- sweeper was there.
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

-- Records an access. The time never goes back: a slow script must not undo a later one.
local function renew(session, new_end, now)
  local last = tonumber(redis.call('HGET', session.key, 'lastAccessedTime'))
  if not last or last < now then redis.call('HSET', session.key, 'lastAccessedTime', integer(now)) end
  set_end(session, new_end, now)
end
