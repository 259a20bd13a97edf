-- The part of a list of arguments from one of them to another.
local function part_of(list, first, last)
  if last - first < 4000 then return { unpack(list, first, last) } end
  -- By unpack(), Lua returns at most 8000 values at once.
  local part = {}
  for i = first, last do part[i - first + 1] = list[i] end
  return part
end
