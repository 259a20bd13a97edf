#!lua flags=allow-oom
--[[
  verify-minutes: looks whether minutes of the bucket list have a bucket.

  KEYS[1] bucket list
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3..] minutes

  Returns each minute that is wrong, and the rule that it breaks, in turn
]]
-- include: findings, keys
local list, prefix, found = KEYS[1], ARGV[2], findings(ARGV[1])

for i = 3, #ARGV do
  local minute = ARGV[i]
  local score = read('ZSCORE', list, minute)
  if score and redis.call('EXISTS', prefix .. 'expirations:' .. minute) == 0 then
    note(found, minute, 'minute-without-bucket', function() redis.call('ZREM', list, minute) end)
  elseif score and tonumber(minute) and tonumber(score) ~= tonumber(minute) then
    note(found, minute, 'minute-misplaced', function() redis.call('ZADD', list, minute, minute) end)
  end
end
return found
