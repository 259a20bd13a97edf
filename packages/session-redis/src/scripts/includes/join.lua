-- Adds the member of the session `id` where includes/place has found room: to `bucket`, or without one to the sorted set.
if bucket then
  redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. id)
  if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end
else
  redis.call('ZADD', prefix .. 'ends', ends_at, id)
  -- Of several partitions, an instance looks at each only once a minute unless it knows of an end before that.
  if ends_at < now + 60000 and string.find(events, '{', 1, true) then
    redis.pcall('SPUBLISH', events, 'end ' .. math.max(0, ends_at - now))
  end
end
