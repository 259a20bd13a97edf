-- Moves a live session to another layout, with its exact end: from the keys with `old_prefix` to those with `new_prefix`.
-- Whether it has. Else it has ended or expired, or the second result tells that the epoch ends it: an end is recorded where
-- the session was.
local function move(id)
  local prefix, left_bucket, left_list = old_prefix, old_prefix .. 'expirations:', old_prefix .. 'expirations'
  local bucket_prefix, bucket_list = new_prefix .. 'expirations:', new_prefix .. 'expirations'
  -- include: index, buckets
  local key, shadow = old_prefix .. 'sessions:' .. id, old_prefix .. 'sessions:expires:' .. id
  local new_key, new_shadow = new_prefix .. 'sessions:' .. id, new_prefix .. 'sessions:expires:' .. id
  local text, fields = read('GET', shadow), read('HMGET', key, 'creationTime', 'authenticatedAt', 'bucket', 'index')
  if text == false then return false end
  if text == nil then error(wrong_type('string', shadow, id)) end
  if fields == nil then error(wrong_type('hash', key, id)) end
  if not fields[1] and redis.call('EXISTS', key) == 0 then
    -- No session, and not to become half of one. Without the shadow key the sweeper reports the end, with the data lost.
    redis.call('DEL', shadow)
    return false
  end
  local began = math.max(tonumber(fields[1]) or 0, tonumber(fields[2]) or 0)
  for _, each in ipairs({ old_prefix, new_prefix }) do
    local epoch = tonumber(redis.call('HGET', each .. 'epoch', 'at'))
    if epoch and began <= epoch then return false, true end
  end
  if redis.call('EXISTS', new_key, new_shadow) > 0 then
    error(redis.error_reply('ERR a session cannot move, because its key ' .. new_prefix .. 'sessions:... is taken'))
  end
  local entries = fields[4] and recorded_entries(fields[4]) or {}
  for _, entry in ipairs(entries) do
    entry.new_set = new_prefix .. 'index:' .. entry.name .. ':' .. entry.value
    if read('ZCARD', entry.new_set) == nil then error(wrong_type('zset', entry.new_set, entry.value)) end
    entry.score = redis.call('ZSCORE', entry.set, id) or began
  end
  local left, is_in_set = tonumber(fields[3]) and fields[3], nil
  local is_in = left and read('SISMEMBER', left_bucket .. left, 'expires:' .. id) == 1
  local is_last = is_in and redis.call('SCARD', left_bucket .. left) == 1
  if is_last and read('ZSCORE', left_list, left) == nil then error(wrong_type('zset', left_list)) end
  -- As in claim-expired: the sum of the time and the time to live can fall into another minute.
  local ends_at = redis.call('PEXPIRETIME', shadow)
  local bucket, is_new, joins_set
  if left then
    bucket = ends_at >= 0 and bucket_to_join(ends_at)
    is_new = bucket and not is_listed(bucket)
  else
    -- It stays in the sorted set: whoever moves it need not know where others put new sessions.
    is_in_set = read('ZSCORE', old_prefix .. 'ends', id)
    if read('ZCARD', new_prefix .. 'ends') == nil then error(wrong_type('zset', new_prefix .. 'ends')) end
    joins_set = ends_at >= 0
  end

  redis.call('RENAME', key, new_key)
  redis.call('RENAME', shadow, new_shadow)
  if is_in then redis.call('SREM', left_bucket .. left, 'expires:' .. id) end
  if is_last then redis.call('ZREM', left_list, left) end
  if is_in_set then redis.call('ZREM', old_prefix .. 'ends', id) end
  if joins_set then
    redis.call('ZADD', new_prefix .. 'ends', ends_at, id)
    -- As in includes/join; whoever hears it ignores an end that is far away.
    local left_time = redis.call('PTTL', new_shadow)
    if string.find(new_prefix, '{', 1, true) then redis.pcall('SPUBLISH', new_prefix .. 'events', 'end ' .. left_time) end
  end
  if bucket then
    redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. id)
    if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end
    if bucket ~= fields[3] then redis.call('HSET', new_key, 'bucket', bucket) end
  elseif fields[3] then
    redis.call('HDEL', new_key, 'bucket')
  end
  for _, entry in ipairs(entries) do
    redis.call('ZREM', entry.set, id)
    redis.call('ZADD', entry.new_set, entry.score, id)
  end
  return true
end
