-- Adds a field of the session hash to what a change sets, or without a text to what it removes.
local function put(change, field, text)
  local set = change.set
  if text then set[#set + 1], set[#set + 2] = field, text else table.insert(change.removed, field) end
end
