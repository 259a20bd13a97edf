-- include: signal
-- Adds the member of a session to the place for its end.
local function join(partition, id, place, now)
  local bucket, ends_at = place.bucket, place.ends_at
  if bucket then
    redis.call('SADD', partition.prefix .. 'expirations:' .. bucket, 'expires:' .. id)
    if place.is_new then redis.call('ZADD', partition.bucket_list, bucket, bucket) end
    return
  end
  redis.call('ZADD', partition.prefix .. 'ends', ends_at, id)
  -- Of several partitions, an instance looks at each only once a minute unless it knows of an end before that.
  if ends_at < now + 60000 then signal(partition.events, 'end ' .. math.max(0, ends_at - now)) end
end
