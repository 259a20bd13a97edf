#!lua flags=allow-oom
--[[
  set-back-signs: lets signs of instances that are ahead of the clock, which was set back since then, count as ones of now.

  KEYS[1] last signs of the instances
  ARGV[1] time in epoch ms

  Returns nothing
]]
local signs, time = KEYS[1], ARGV[1]

for _, name in ipairs(redis.call('ZRANGEBYSCORE', signs, '(' .. time, '+inf')) do redis.call('ZADD', signs, time, name) end
