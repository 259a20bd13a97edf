-- include: place, join
-- Moves the member of a session from where is_misplaced() has found it to the place for its new end.
local function rebucket(partition, session, ends_at, now)
  local place = ends_at and place_for(partition, ends_at) or {}
  local recorded, left = session.bucket, session.is_in_bucket and session.bucket
  local stays = left and place.bucket == left
  if left and not stays then
    local bucket, member = partition.prefix .. 'expirations:' .. left, 'expires:' .. session.id
    local is_last = redis.call('SCARD', bucket) == 1 and is_listed(partition.bucket_list, left)
    redis.call('SREM', bucket, member)
    if is_last then redis.call('ZREM', partition.bucket_list, left) end
  end
  if session.due and (place.bucket or not ends_at) then redis.call('ZREM', partition.prefix .. 'ends', session.id) end
  if ends_at and not stays then join(partition, session.id, place, now) end
  if place.bucket and place.bucket ~= recorded then redis.call('HSET', session.key, 'bucket', place.bucket) end
  if recorded and not place.bucket then redis.call('HDEL', session.key, 'bucket') end
  session.bucket, session.is_in_bucket, session.due = place.bucket, place.bucket ~= nil, not place.bucket and ends_at
end
