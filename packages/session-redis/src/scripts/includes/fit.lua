-- Adds what the save sets to `size`: the bytes of the attributes as millions, plus their number, as in session-size.ts. It
-- is an upper bound: what is replaced is subtracted only when there is no room otherwise, and what is removed is not.
-- When that is too much as well, or nobody has counted yet, the session is counted.
local most_attributes, size = largest % 1000000, tonumber(fields[5])
size = size and size + added
if not (size and size % 1000000 <= most_attributes and size < largest - most_attributes + 1000000) then
  -- paste: count
end
ARGV[last + 1], ARGV[last + 2] = 'size', size
last = last + 2
