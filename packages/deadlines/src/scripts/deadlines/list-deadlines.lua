#!lua flags=no-writes
--[[
  list-deadlines: a page of the waiting deadlines of a name, in the order of their times and, of equal ones, of their members.

  KEYS[1] sorted set of what waits of the name
  ARGV[1] only those that are due before, in epoch ms; empty: all
  ARGV[2] only those behind this time, in epoch ms; empty: from the first one
  ARGV[3] and, of those at that time, behind this member
  ARGV[4] at most how many

  Returns for each its member and its time, in turn
]]
local due, before, limit = KEYS[1], ARGV[1], tonumber(ARGV[4])

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

local first, found = ARGV[2] == '' and 0 or rank_behind(ARGV[2], ARGV[3]), {}
local page = redis.call('ZRANGE', due, first, first + limit - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  if before ~= '' and tonumber(page[i + 1]) >= tonumber(before) then break end
  found[#found + 1], found[#found + 2] = page[i], page[i + 1]
end
return found
