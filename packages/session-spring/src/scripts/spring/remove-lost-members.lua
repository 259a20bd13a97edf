#!lua flags=allow-oom
--[[
  remove-lost-members: looks which members of a set or a sorted set of Spring name a key that is gone.

  KEYS[1] set or sorted set
  KEYS[2..] the key that each member names
  ARGV[1] 1: remove those members
  ARGV[2..] members, as they are stored

  Returns the number of each member whose key is gone
]]
local place, keys, members, mends, reply = KEYS[1], KEYS, ARGV, ARGV[1] == '1', {}
local is_sorted = redis.call('TYPE', place).ok == 'zset'

local function is_member(member)
  if is_sorted then return redis.call('ZSCORE', place, member) end
  return redis.call('TYPE', place).ok == 'set' and redis.call('SISMEMBER', place, member) == 1
end

for i = 2, #keys do
  if is_member(members[i]) and redis.call('EXISTS', keys[i]) == 0 then
    reply[#reply + 1] = i - 1
    if mends then redis.call(is_sorted and 'ZREM' or 'SREM', place, members[i]) end
  end
end
return reply
