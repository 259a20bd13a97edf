#!lua flags=allow-oom
--[[
  erase-events: removes events, whatever groups have done with them.

  KEYS[1] events stream
  ARGV[1..] positions

  Returns how many were there
]]
-- include: groups, keys, pending
local events = KEYS[1]
read_typed('stream', 'XLEN', events)

local groups = groups_of(events)
for _, position in ipairs(ARGV) do
  for name in pairs(groups) do settle(events, name, events .. ':failing:' .. name, events .. ':retries:' .. name, position) end
end
return redis.call('XDEL', events, unpack(ARGV))
