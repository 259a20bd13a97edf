#!lua flags=allow-oom
--[[
  remove-consumer: removes an instance that has stopped from its group, unless events are pending with it: those would
  be lost with it, where another instance can still take them over.

  KEYS[1] events
  ARGV[1] group
  ARGV[2] consumer

  Returns
    'removed'
    'pending'
]]
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if #pending > 0 then return 'pending' end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 'removed'
