#!lua flags=allow-oom
--[[
  raise-epoch: says that every session of the partition that was created and signed in to until now is over. Instances
  compare that with each session that they load. end-older-sessions then ends them, with their events.

  KEYS[1] epoch

  Returns the epoch in epoch ms
]]
-- include: clock, digits, epoch
local epoch = KEYS[1]
local at = math.max(now_in_ms(), epoch_at(epoch))
redis.call('HSET', epoch, 'at', at)
return digits(at)
