-- Adds the member of a session to the place for its end.
local function join(partition, id, place, now)
  local bucket, ends_at = place.bucket, place.ends_at
  if bucket then
    redis.call('SADD', partition.prefix .. 'expirations:' .. bucket, 'expires:' .. id)
    if place.is_new then redis.call('ZADD', partition.bucket_list, bucket, bucket) end
    return
  end
  redis.call('ZADD', partition.prefix .. 'ends', ends_at, id)
  -- include: signal-end
  signal_end(partition.events, ends_at - now)
end
