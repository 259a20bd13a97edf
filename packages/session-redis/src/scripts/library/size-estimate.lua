-- The estimate that spares most changes the count of library/bounds. The session hash has it in `size`, once a change
-- with bounds has counted: the most bytes that its attributes may have, because what is replaced and removed still
-- counts.

-- That estimate after a change; nil when nobody has counted yet. The second result is the reply to a change that does
-- not fit; nil when it may be made. The attributes themselves are counted when there seems to be no room.
local function size_after(key, size, change)
  local set, most = change.set, change.max_size
  for i = 1, size and #set or 0 do size = size + #set[i] end
  -- Every session has three fields that are no attributes.
  local seems_full = not size or most and (size > most or redis.call('HLEN', key) - 3 + #set / 2 > change.max_attributes)
  if not most or not seems_full then return size, nil end
  -- include: bounds
  return counted_size(key, change)
end
