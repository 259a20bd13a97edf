-- include: digits
-- Milliseconds that Spring keeps what has ended.
local SPRING_GRACE = 300000

-- The bucket in which Spring notes an end. An end on a full minute belongs to the next one.
local function spring_bucket(prefix, ends_at)
  return prefix .. 'expirations:' .. digits(math.floor((ends_at + 60000) / 60000) * 60000)
end
