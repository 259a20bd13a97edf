-- Moves the member of the session from where it stands, if anywhere, to where its new end belongs.
-- paste: buckets
local recorded, left_bucket, left_set, is_new = bucket, is_in == 1 and bucket, due, nil
bucket, due = nil, nil
if ends_at then
  -- paste: place
  if not bucket then due = ends_at end
end
local stays = bucket and bucket == left_bucket
local leaves = left_bucket and not stays
local is_last = leaves and redis.call('SCARD', bucket_prefix .. left_bucket) == 1 and is_listed(left_bucket)
if leaves then redis.call('SREM', bucket_prefix .. left_bucket, 'expires:' .. id) end
if is_last then redis.call('ZREM', bucket_list, left_bucket) end
if left_set and not due then redis.call('ZREM', prefix .. 'ends', id) end
if ends_at and not stays then
  -- paste: join
end
if bucket then
  if bucket ~= recorded then redis.call('HSET', key, 'bucket', bucket) end
elseif recorded then
  redis.call('HDEL', key, 'bucket')
end
