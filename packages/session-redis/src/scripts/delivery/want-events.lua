#!lua flags=allow-oom
--[[
  want-events: tells that a group wants events, besides those that it wants already.

  KEYS[1] which events each group wants
  ARGV[1] group
  ARGV[2..] types of the events

  Returns
    'wanted'
]]
local types = redis.call('HGET', KEYS[1], ARGV[1]) or ''
for i = 2, #ARGV do
  if not string.find(types, ARGV[i], 1, true) then types = (types == '' and '' or types .. ' ') .. ARGV[i] end
end
redis.call('HSET', KEYS[1], ARGV[1], types)
return 'wanted'
