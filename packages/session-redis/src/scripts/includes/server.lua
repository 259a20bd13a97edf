-- The clock of the server, and the types of keys.

-- Lua itself would write 1.4e+12.
local function integer(number)
  return string.format('%.0f', number)
end

-- The server's clock in epoch milliseconds: the only clock that decides anything.
local function now_in_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- An error for the first {key, type, name in the error} whose key has another type; nil when all types are right. A
-- script has no rollback, so it checks every key that it will write before its first write.
local function wrong_type(expected)
  for _, pair in ipairs(expected) do
    local actual = redis.call('TYPE', pair[1]).ok
    if actual ~= 'none' and actual ~= pair[2] then
      return redis.error_reply('WRONGTYPE ' .. (pair[3] or pair[1]) .. ' is a ' .. actual .. ', not a ' .. pair[2])
    end
  end
  return nil
end
