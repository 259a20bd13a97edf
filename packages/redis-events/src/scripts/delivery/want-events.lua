#!lua flags=allow-oom
--[[
  want-events: tells that a group wants events, besides those that it wants already.

  KEYS[1] which events each group wants
  ARGV[1] group
  ARGV[2..] types of the events

  Returns
    'wanted'
]]
-- include: words
local wanted, group = KEYS[1], ARGV[1]

local types = redis.call('HGET', wanted, group) or ''
for i = 2, #ARGV do types = with_word(types, ARGV[i]) end
redis.call('HSET', wanted, group, types)
return 'wanted'
