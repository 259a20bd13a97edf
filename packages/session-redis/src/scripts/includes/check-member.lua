-- Looks for the member of the session: `is_in` is 1 when the session is really in the recorded `bucket`. Without one, `due`
-- is its time in the sorted set. A record that is trusted never repairs a lost member.
-- `moves`: whether the member moves. It may be early, never late: it moves only when the new end comes before it, or when
-- the minute of the bucket has passed without a sweep.
local minute = tonumber(bucket)
if minute then
  is_in = redis.pcall('SISMEMBER', bucket_prefix .. bucket, 'expires:' .. id)
  if type(is_in) == 'table' then
    -- paste: types
    -- A session whose recorded bucket is a stray key is in no bucket.
    is_in = checked(is_in)
  end
  moves = not ends_at or is_in ~= 1 or minute <= now or minute > ends_at + 60000
else
  due = redis.pcall('ZSCORE', prefix .. 'ends', id)
  if type(due) == 'table' then
    -- paste: types
    due = checked(due)
  end
  due = tonumber(due)
  moves = due or bucket
  if ends_at then moves = not due or due > ends_at end
end
