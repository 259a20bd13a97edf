-- The member of a session: it stands in the bucket of a minute, or else in the sorted set of ends.

-- Looks where it really stands: `session.is_in_bucket`, in the recorded one, or `session.due`, its time in the sorted set. A
-- record that is trusted never repairs a lost member. Returns whether it belongs elsewhere when the session ends then. It may
-- be early, never late: it moves only when the end comes before it, or when the minute of the bucket has passed without a
-- sweep.
local function is_misplaced(partition, session, ends_at, now)
  local minute, reply, due = tonumber(session.bucket), nil, nil
  if minute then
    reply = redis.pcall('SISMEMBER', partition.prefix .. 'expirations:' .. session.bucket, 'expires:' .. session.id)
  else
    reply = redis.pcall('ZSCORE', partition.prefix .. 'ends', session.id)
    due = tonumber(reply)
  end
  if type(reply) == 'table' then
    -- include: keys
    -- A stray key in the place of either has no member.
    checked(reply)
  end
  session.is_in_bucket, session.due = minute and reply == 1, due
  if session.is_in_bucket then return not ends_at or minute <= now or minute > ends_at + 60000 end
  if not ends_at then return due or session.bucket end
  return not due or due > ends_at
end
