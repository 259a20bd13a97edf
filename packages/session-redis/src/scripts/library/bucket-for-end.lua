-- The minute of the bucket for an end. Rounded up as in Spring Session: an end on a full minute belongs to the next
-- one. When a stray key stands in the way, it is the nearest earlier one: a member may be early, never late.
local function bucket_for(prefix, ends_at)
  local minute = math.floor((ends_at + 60000) / 60000) * 60000
  while true do
    -- Lua itself writes no more than 14 digits.
    local bucket = string.format('%.0f', minute)
    local size = redis.pcall('SCARD', prefix .. 'expirations:' .. bucket)
    if type(size) == 'number' then return bucket end
    -- include: keys
    checked(size)
    minute = minute - 60000
  end
end

-- Whether the bucket list has a minute.
local function is_listed(bucket_list, bucket)
  local score = redis.pcall('ZSCORE', bucket_list, bucket)
  if type(score) ~= 'table' then return score ~= false end
  -- include: keys
  return read_typed('zset', 'ZSCORE', bucket_list, bucket) ~= false
end
