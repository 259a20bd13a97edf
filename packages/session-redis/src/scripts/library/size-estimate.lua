-- The estimate that spares most changes the count of library/bounds: the most bytes that the attributes may have, because
-- what is replaced and removed still counts. The session hash has it in `size`, once a change with bounds has counted.

-- That estimate after a change, nil when nobody has counted yet; and the reply to a change that does not fit.
local function size_after(key, size, change)
  local set, most = change.set, change.max_size
  for i = 1, size and #set or 0 do size = size + #set[i] end
  -- Every session has three fields that are no attributes.
  local seems_full = not size or most and (size > most or redis.call('HLEN', key) - 3 + #set / 2 > change.max_attributes)
  if not most or not seems_full then return size, nil end
  -- include: bounds
  return counted_size(key, change)
end
