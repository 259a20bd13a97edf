-- include: set-end
-- Lets a session end then, nil for never, and moves its member if it has to: most stand in the `bucket` of the hash, and stay.
local function renew(prefix, bucket_list, events, id, key, shadow, bucket, ends_at, now, grace)
  local minute = ends_at and tonumber(bucket)
  local stays = minute and minute > now and minute <= ends_at + 60000
  if not stays or redis.pcall('SISMEMBER', prefix .. 'expirations:' .. bucket, 'expires:' .. id) ~= 1 then
    -- include: member, rebucket
    local session, is_elsewhere = { id = id, key = key, bucket = bucket }, nil
    is_elsewhere, session.is_in_bucket, session.due = is_misplaced(prefix, id, bucket, ends_at, now)
    if is_elsewhere then rebucket({ prefix = prefix, bucket_list = bucket_list, events = events }, session, ends_at, now) end
  end
  set_end(key, shadow, ends_at, grace)
end
