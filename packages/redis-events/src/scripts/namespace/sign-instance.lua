#!lua flags=allow-oom
--[[
  sign-instance: notes that an instance is alive, and tells which ones are. Signs that are ahead of the clock, which was
  set back since then, count as ones of now. It runs when Redis is out of memory as well: the instance lives, and a
  repartition would move sessions under it.

  KEYS[1] last signs of the instances
  ARGV[1] name of the instance; empty: signs nothing
  ARGV[2] for how many ms an instance counts as alive
  ARGV[3] for how many ms its sign is kept

  Returns {1 when Redis did not know the instance, else 0; names of the living ones, in turn}
]]
-- include: clock
local signs, name, alive, kept = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now = now_in_ms()
for _, each in ipairs(redis.call('ZRANGEBYSCORE', signs, '(' .. now, '+inf')) do redis.call('ZADD', signs, now, each) end
local is_new = name ~= '' and redis.call('ZADD', signs, now, name) or 0
for _, each in ipairs(redis.call('ZRANGEBYSCORE', signs, '-inf', now - kept)) do redis.call('ZREM', signs, each) end
return { is_new, unpack(redis.call('ZRANGEBYSCORE', signs, now - alive, '+inf')) }
