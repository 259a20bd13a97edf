-- Where the member of a session really stands, in the bucket of a minute or in the sorted set: a record that is trusted
-- never repairs a lost member. Returns whether it belongs elsewhere when the session ends then, whether it is in the
-- recorded `bucket`, and its time in the sorted set. It may be early, never late: it moves when the end comes before it, or
-- the minute of the bucket has passed without a sweep.
local function is_misplaced(prefix, id, bucket, ends_at, now)
  local minute = tonumber(bucket)
  local reply = minute and redis.pcall('SISMEMBER', prefix .. 'expirations:' .. bucket, 'expires:' .. id)
  if not minute then reply = redis.pcall('ZSCORE', prefix .. 'ends', id) end
  local due = not minute and tonumber(reply) or nil
  if type(reply) == 'table' then
    -- include: keys
    -- A stray key in the place of either has no member.
    checked(reply)
  end
  if minute and reply == 1 then return not ends_at or minute <= now or minute > ends_at + 60000, true, nil end
  if not ends_at then return due or bucket, false, due end
  return not due or due > ends_at, false, due
end
