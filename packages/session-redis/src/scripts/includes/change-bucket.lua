-- Moves the session from the bucket in which it is, if any, to that of its new end.
-- include: buckets
local current = is_in == 1 and bucket
local new_bucket = ends_at and bucket_to_join(ends_at)
if current ~= new_bucket then
  local is_new = new_bucket and not is_listed(new_bucket)
  local is_last = current and redis.call('SCARD', bucket_prefix .. current) == 1 and is_listed(current)
  if current then redis.call('SREM', bucket_prefix .. current, 'expires:' .. id) end
  if is_last then redis.call('ZREM', bucket_list, current) end
  if new_bucket then redis.call('SADD', bucket_prefix .. new_bucket, 'expires:' .. id) end
  if is_new then redis.call('ZADD', bucket_list, new_bucket, new_bucket) end
end
if new_bucket then redis.call('HSET', key, 'bucket', new_bucket) else redis.call('HDEL', key, 'bucket') end
bucket = new_bucket
