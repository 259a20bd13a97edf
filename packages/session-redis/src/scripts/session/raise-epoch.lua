#!lua flags=allow-oom
--[[
  raise-epoch: says that every session of the partition that was created and signed in to until a time is over. Loads
  compare that with each session, and end-older-sessions ends them, with their events.

  KEYS[1] epoch
  ARGV[1] the time in epoch ms; empty or 0: now. One that is later than now counts as now

  Returns the epoch in epoch ms: that time, or a later one that the partition had before
]]
-- include: clock, digits, epoch
local epoch, now, asked = KEYS[1], now_in_ms(), tonumber(ARGV[1]) or 0
local at = math.max(asked == 0 and now or math.min(asked, now), epoch_at(epoch))
redis.call('HSET', epoch, 'at', at, 'raised', now)
return digits(at)
