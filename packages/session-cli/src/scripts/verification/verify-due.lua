#!lua flags=allow-oom
--[[
  verify-due: looks whether what is due of a name are deadlines, and whether the list of names knows when the first one is.

  KEYS[1] sorted set of what waits of the name
  KEYS[2] sorted set of the names
  KEYS[3] dead letters
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3] name
  ARGV[4] most bytes of the partition's dead letters
  ARGV[5..] members

  Returns each member that is wrong, or the name, and the rule that it breaks, in turn
]]
-- include: bury, clock, digits, findings
local due, names, prefix, name, found = KEYS[1], KEYS[2], ARGV[2], ARGV[3], findings(ARGV[1])
local letters = { dead = KEYS[3], most_bytes = tonumber(ARGV[4]), at = digits(now_in_ms()) }

local function is_lost(member)
  if not read('ZSCORE', due, member) then return false end
  local fields = read('HMGET', prefix .. 'deadlines:' .. member, 'id', 'due')
  return not (fields and fields[1] and fields[2])
end

local function bury_lost(member)
  local function remove() return redis.call('ZREM', due, member) == 1 end
  bury(letters, 'due:' .. name .. ' ' .. member, 'the deadline of this member is lost', remove)
end

for i = 5, #ARGV do
  local member = ARGV[i]
  if is_lost(member) then note(found, member, 'due-without-deadline', function() bury_lost(member) end) end
end
local first = (read('ZRANGE', due, 0, 0, 'WITHSCORES') or {})[2]
local noted = read('ZSCORE', names, name)
if first and noted ~= nil and not (noted and tonumber(noted) <= tonumber(first)) then
  note(found, name, 'name-not-scheduled', function() redis.call('ZADD', names, first, name) end)
end
return found
