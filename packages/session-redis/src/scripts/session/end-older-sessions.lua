#!lua flags=allow-oom
--[[
  end-older-sessions: deletes those of some sessions that began before the epoch of their partition, or in its millisecond,
  and records a `deleted` event for each.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3..] ids

  Returns the number of sessions that this call ended
]]
-- include: keys, clock, epoch, end-by-id
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }
local epoch, retention = epoch_at(KEYS[3]), ARGV[2]

local ending = { how = 'deleted', cause = 'everybody', at = now_in_ms(), retention = retention }
local ended = 0
for i = 3, #ARGV do
  local times = read('HMGET', partition.prefix .. 'sessions:' .. ARGV[i], 'creationTime', 'authenticatedAt')
  local is_over = times and is_ended_by(epoch, times[1], times[2])
  if is_over and end_by_id(partition, ARGV[i], ending) then ended = ended + 1 end
end
return ended
