-- Replies that have names and values in turn, such as the fields of an entry.

-- The value of a field; empty when there is no such field.
local function value_in(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return ''
end

local function named(reply)
  local fields = {}
  for i = 1, #reply, 2 do fields[reply[i]] = reply[i + 1] end
  return fields
end
