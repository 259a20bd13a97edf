-- The server's clock in epoch milliseconds: the only clock that decides anything.
local function now_in_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
