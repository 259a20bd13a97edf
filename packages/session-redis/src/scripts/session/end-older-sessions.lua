#!lua flags=allow-oom
--[[
  end-older-sessions: deletes those of some sessions that began before the epoch of their partition, or in its millisecond,
  and records a `deleted` event for each.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3..] ids

  Returns the number of sessions that this call ended
]]
-- paste: keys, clock
local bucket_list, events, kept, is_wanted = KEYS[1], KEYS[2], ARGV[2], nil
-- paste: end-session
local at, ended = tonumber(redis.call('HGET', KEYS[3], 'at')) or 0, 0
for i = 3, #ARGV do
  local times = read('HMGET', prefix .. 'sessions:' .. ARGV[i], 'creationTime', 'authenticatedAt')
  local began = times and math.max(tonumber(times[1]) or 0, tonumber(times[2]) or 0)
  if began and began <= at and end_session(ARGV[i]) then ended = ended + 1 end
end
return ended
