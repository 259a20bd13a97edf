#!lua flags=allow-oom
--[[
  want-broadcast: tells that broadcast handlers want events of some types.

  KEYS[1..] for each type, exists while they do
  ARGV[1] for how many ms from now

  Returns one word for each type
    'renewed'
    'begun'  they were not wanted until now
]]
local duration = ARGV[1]

local words = {}
for i, key in ipairs(KEYS) do
  local existed = redis.call('SET', key, '', 'PX', duration, 'GET')
  words[i] = existed and 'renewed' or 'begun'
end
return words
