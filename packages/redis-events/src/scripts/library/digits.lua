-- Lua itself writes no more than 14 digits.
local function digits(number)
  return string.format('%.0f', number)
end
