#!lua flags=no-writes
--[[
  count-sessions: the number of sessions that the index of a value lists in all partitions, while sessions move from one
  partition to another.

  KEYS[1..] index in each partition

  Returns the number
]]
local count = 0
for _, index in ipairs(KEYS) do count = count + redis.call('ZCARD', index) end
return count
