-- include: bucket-for-end
-- The place for the member of a session that ends then: the sorted set, or a `bucket` when a stray key is in its place.
local function place_for(partition, ends_at)
  local size = redis.pcall('ZCARD', partition.prefix .. 'ends')
  if type(size) == 'number' then return { ends_at = ends_at } end
  -- include: keys
  checked(size)
  local bucket = bucket_for(partition.prefix, ends_at)
  return { ends_at = ends_at, bucket = bucket, is_new = not is_listed(partition.bucket_list, bucket) }
end
