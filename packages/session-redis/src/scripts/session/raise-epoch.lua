#!lua flags=allow-oom
--[[
  raise-epoch: says that every session of the partition that was created and signed in to until now is over. Instances
  compare that with each session that they load. end-older-sessions then ends them, with their events.

  KEYS[1] epoch

  Returns the epoch in epoch ms
]]
-- include: clock
local at = math.max(now, tonumber(redis.call('HGET', KEYS[1], 'at')) or 0)
redis.call('HSET', KEYS[1], 'at', at)
return string.format('%.0f', at)
