-- A whole number as a text. Lua itself would write 1.4e+12.
local function digits(number)
  return string.format('%.0f', number)
end
