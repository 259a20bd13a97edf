#!lua
--[[
  set-aside-index: makes room for an index where a key of another type stands in its place, such as one in the form of
  another version. The sessions that it lists, if it is a set, are listed in the new index.

  KEYS[1] index
  KEYS[2] key that the other one gets
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the other key is kept, in ms

  Returns the type of the other key, and how many sessions are listed anew; nil when there is no such key
]]
-- include: keys
local index, aside, prefix, kept_for = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local kind, listed = redis.call('TYPE', index).ok, 0
if kind == 'zset' or kind == 'none' then return nil end
redis.call('RENAME', index, aside)
redis.call('PEXPIRE', aside, kept_for)
for _, id in ipairs(kind == 'set' and redis.call('SMEMBERS', aside) or {}) do
  local is_live = redis.call('EXISTS', prefix .. 'sessions:expires:' .. id) == 1
  local times = is_live and read('HMGET', prefix .. 'sessions:' .. id, 'authenticatedAt', 'creationTime')
  local score = times and tonumber(times[1] or times[2])
  if score then listed = listed + redis.call('ZADD', index, score, id) end
end
return { kind, listed }
