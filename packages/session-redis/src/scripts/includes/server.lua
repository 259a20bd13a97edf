-- What any script asks of the server.

-- Lua would write 1.4e+12.
local function integer(number)
  return string.format('%.0f', number)
end

-- The server's clock in epoch milliseconds: the only clock that decides anything.
local function now_in_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- An error for the first {key, type} whose key holds another type; nil when all are as they should be. Lua has no
-- rollback, so this comes before the first write, for every key that will be written.
local function wrong_type(expected)
  for _, pair in ipairs(expected) do
    local actual = redis.call('TYPE', pair[1]).ok
    if actual ~= 'none' and actual ~= pair[2] then
      return redis.error_reply('WRONGTYPE ' .. (pair[3] or pair[1]) .. ' is a ' .. actual .. ', not a ' .. pair[2])
    end
  end
  return nil
end
