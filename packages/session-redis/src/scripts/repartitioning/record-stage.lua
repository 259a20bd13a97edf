#!lua flags=allow-oom
--[[
  record-stage: records the next stage of the move of all sessions to other partitions.

  KEYS[1] meta hash
  ARGV[1] what it records of the partitions now
  ARGV[2] what it is to record

  Returns
    'recorded'
    'other'    it records something else
]]
local recorded = redis.call('HGET', KEYS[1], 'partitions')
if recorded ~= ARGV[1] and recorded ~= ARGV[2] then return 'other' end
redis.call('HSET', KEYS[1], 'partitions', ARGV[2])
return 'recorded'
