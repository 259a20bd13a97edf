#!lua flags=allow-oom
--[[
  sign-instance: notes that an instance is alive. It runs when Redis is out of memory as well: the instance lives, and a
  repartition would move sessions under it.

  KEYS[1] last signs of the instances
  ARGV[1] time in epoch ms
  ARGV[2] name of the instance

  Returns 1 when Redis did not know the instance, else 0
]]
local signs, time, name = KEYS[1], ARGV[1], ARGV[2]

return redis.call('ZADD', signs, time, name)
