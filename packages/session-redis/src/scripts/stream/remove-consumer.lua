#!lua flags=allow-oom
--[[
  remove-consumer: removes a dead instance from its group, unless it has pending entries: Redis would drop them, and
  another instance can still take them over.

  KEYS[1] events stream
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
