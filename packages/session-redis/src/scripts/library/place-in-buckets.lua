-- include: bucket-for-end
-- The place for the member of a session that ends then: its `bucket`, and whether that `is_new`.
local function place_for(partition, ends_at)
  local bucket = bucket_for(partition.prefix, ends_at)
  return { ends_at = ends_at, bucket = bucket, is_new = not is_listed(partition.bucket_list, bucket) }
end
