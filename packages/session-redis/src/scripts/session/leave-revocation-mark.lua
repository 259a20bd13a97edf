#!lua flags=allow-oom
--[[
  leave-revocation-mark: leaves a revocation mark, with the time of Redis. Like every end, it runs when Redis is out of
  memory. The longer time of a mark that is there stays: an instance that takes over sessions may have left it.

  KEYS[1] revocation mark
  ARGV[1] for how long at least, in ms

  Returns nothing
]]
-- include: clock, digits
local mark, kept_for = KEYS[1], ARGV[1]
redis.call('SET', mark, digits(now_in_ms()), 'PX', math.max(redis.call('PTTL', mark), kept_for))
