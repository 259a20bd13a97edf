#!lua
--[[
  raise-format: raises the recorded numbers of the format, each one unless it is as high. It is one step, so that of two
  versions that start at once the newer one wins.

  KEYS[1] record of the namespace
  ARGV[1..] fields and their numbers, in turn

  Returns nothing
]]
local record = KEYS[1]

for i = 1, #ARGV, 2 do
  local known = tonumber(redis.call('HGET', record, ARGV[i]) or nil)
  if not known or known < tonumber(ARGV[i + 1]) then redis.call('HSET', record, ARGV[i], ARGV[i + 1]) end
end
