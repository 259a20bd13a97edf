#!lua flags=no-writes
--[[
  list-deadlines: a page of the waiting deadlines of a name, in the order of their times and, of equal ones, of their members.

  KEYS[1] sorted set of what waits of the name
  ARGV[1] what their hashes' keys begin with
  ARGV[2] only those that are due before, in epoch ms; empty: all
  ARGV[3] only those behind this time, in epoch ms; empty: from the first one
  ARGV[4] and, of those at that time, behind this member
  ARGV[5] at most how many

  Returns for each the fields of its hash and their values
]]
local due, prefix, before, limit = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[5])

-- The rank of the first one behind a member at a time, whether it is there or not.
local function rank_behind(time, member)
  local low = redis.call('ZCOUNT', due, '-inf', '(' .. time)
  local high = low + redis.call('ZCOUNT', due, time, time)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZRANGE', due, middle, middle)[1] <= member then low = middle + 1 else high = middle end
  end
  return low
end

local first, found = ARGV[3] == '' and 0 or rank_behind(ARGV[3], ARGV[4]), {}
local page = redis.call('ZRANGE', due, first, first + limit - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  if before ~= '' and tonumber(page[i + 1]) >= tonumber(before) then break end
  found[#found + 1] = redis.call('HGETALL', prefix .. page[i])
end
return found
