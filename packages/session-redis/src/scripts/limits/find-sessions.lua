#!lua flags=allow-oom
--[[
  find-sessions: finds the live sessions of a principal among some ids.

  KEYS[1] index of principals, for the principal
  KEYS[2] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2..] ids

  Returns the ids of live sessions that the index lists, and that the epoch does not end
]]
-- include: is-live
local index, epoch, prefix, live = KEYS[1], epoch_at(KEYS[2]), ARGV[1], {}

for i = 2, #ARGV do
  local score = redis.call('ZSCORE', index, ARGV[i])
  if score and is_live(prefix, ARGV[i], score, epoch) then table.insert(live, ARGV[i]) end
end
return live
