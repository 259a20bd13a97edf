-- paste: types
-- The buckets in which the sweeper finds sessions that have ended.

-- The minute of the bucket for an end. Rounded up as in Spring Session: an end on a full minute belongs to the next
-- one. When a stray key stands in the way, it is the nearest earlier one: a member may be early, never late.
local function bucket_to_join(ends_at)
  local minute = math.floor((ends_at + 60000) / 60000) * 60000
  -- Lua itself would write 1.4e+12.
  local bucket = string.format('%.0f', minute)
  while read('SCARD', bucket_prefix .. bucket) == nil do
    minute = minute - 60000
    bucket = string.format('%.0f', minute)
  end
  return bucket
end

-- Whether the bucket list has a minute.
local function is_listed(bucket)
  local score = read('ZSCORE', bucket_list, bucket)
  if score == nil then error(wrong_type('zset', bucket_list)) end
  return score ~= false
end
