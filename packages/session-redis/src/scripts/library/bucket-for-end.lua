-- include: keys
-- The buckets in which the sweeper finds sessions that have ended.

-- The minute of the bucket for an end. Rounded up as in Spring Session: an end on a full minute belongs to the next
-- one. When a stray key stands in the way, it is the nearest earlier one: a member may be early, never late.
local function bucket_for(prefix, ends_at)
  local minute, bucket = math.floor((ends_at + 60000) / 60000) * 60000, nil
  repeat
    -- Lua itself writes no more than 14 digits.
    bucket, minute = string.format('%.0f', minute), minute - 60000
  until read('SCARD', prefix .. 'expirations:' .. bucket)
  return bucket
end

-- Whether the bucket list has a minute.
local function is_listed(bucket_list, bucket)
  return read_typed('zset', 'ZSCORE', bucket_list, bucket) ~= false
end
