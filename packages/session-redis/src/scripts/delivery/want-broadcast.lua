#!lua flags=allow-oom
--[[
  want-broadcast: tells that broadcast handlers want `created` events.

  KEYS[1] exists while they do
  ARGV[1] for how many ms from now

  Returns
    'renewed'
    'begun'  they were not wanted until now
]]
local existed = redis.call('SET', KEYS[1], '', 'PX', ARGV[1], 'GET')
return existed and 'renewed' or 'begun'
