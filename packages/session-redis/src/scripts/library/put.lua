-- Adds a field of the session hash to what a change sets, or without a value to what it removes. Lua itself writes no
-- more than 14 digits of a number.
local function put(change, field, value)
  local n, text = #change.set, type(value) == 'number' and string.format('%.0f', value) or value
  if text then change.set[n + 1], change.set[n + 2] = field, text else table.insert(change.removed, field) end
end
