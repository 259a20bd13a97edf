#!lua flags=allow-oom
--[[
  move-counts: adds counts to those of another partition, and removes them.

  KEYS[1] counts by name
  KEYS[2] those of the other partition

  Returns nothing
]]
-- include: server
local problem = wrong_type({ { KEYS[1], 'hash' }, { KEYS[2], 'hash' } })
if problem then return problem end
local counts = redis.call('HGETALL', KEYS[1])
for i = 1, #counts, 2 do redis.call('HINCRBY', KEYS[2], counts[i], counts[i + 1]) end
redis.call('DEL', KEYS[1])
return nil
