-- `is_in`: 1 when the session is really in the recorded `bucket`; a record that is trusted never repairs a lost member.
-- `moves`: whether it changes its bucket. A member may be early, never late: it moves only when the new end is before
-- the minute of the bucket, or when the minute has passed without a sweep.
local minute = tonumber(bucket)
is_in = minute and redis.pcall('SISMEMBER', bucket_prefix .. bucket, 'expires:' .. id)
if type(is_in) == 'table' then
  -- include: types
  -- A session whose recorded bucket is a foreign key is in no bucket.
  is_in = checked(is_in)
end
moves = bucket
if ends_at then moves = is_in ~= 1 or minute <= now or minute > ends_at + 60000 end
