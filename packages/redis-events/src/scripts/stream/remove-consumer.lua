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
local events, group, consumer = KEYS[1], ARGV[1], ARGV[2]

local pending = redis.call('XPENDING', events, group, '-', '+', 1, consumer)
if #pending > 0 then return 'pending' end
redis.call('XGROUP', 'DELCONSUMER', events, group, consumer)
return 'removed'
