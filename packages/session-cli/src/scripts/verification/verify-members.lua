#!lua flags=allow-oom
--[[
  verify-members: looks whether the members of a bucket, or ids in the sorted set of ends, are those of sessions that stand
  there. It mends the bucket; claim-expired mends what is wrong with a member.

  KEYS[1] bucket, or the sorted set
  KEYS[2] bucket list
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3] minute of the bucket; empty: the sorted set
  ARGV[4] after how many ms an end should have been noticed
  ARGV[5..] the members, expires:<id>

  Returns a member, or the minute, and the rule that it breaks, in turn
]]
-- include: clock, findings, keys
local place, list, prefix, minute, patience = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found, now = findings(ARGV[1]), now_in_ms()

-- When the end of a member is looked at; nil when it stands here no more.
local function due_at(member)
  if not minute then return tonumber(read('ZSCORE', place, string.sub(member, 9)) or nil) end
  return read('SISMEMBER', place, member) == 1 and minute or nil
end

local function stands_elsewhere(member, id, recorded)
  local bucket = tonumber(recorded or nil)
  if bucket and bucket ~= minute then return read('SISMEMBER', prefix .. 'expirations:' .. recorded, member) == 1 end
  return not bucket and minute and read('ZSCORE', prefix .. 'ends', id)
end

local function problem_of(member)
  local time, id = due_at(member), string.sub(member, 9)
  if not time then return nil end
  if time < now - patience then return 'end-overdue' end
  -- The next claim decides about it.
  if time <= now then return nil end
  if string.sub(member, 1, 8) ~= 'expires:' or id == '' then return 'stray-member' end
  local key = prefix .. 'sessions:' .. id
  local fields = read('HMGET', key, 'ended', 'bucket')
  if not fields or redis.call('EXISTS', key) == 0 then return 'member-without-session' end
  if fields[1] then return 'member-of-ended-session' end
  return stands_elsewhere(member, id, fields[2]) and 'member-twice' or nil
end

if minute and read('SCARD', place) ~= 0 and read('ZSCORE', list, ARGV[3]) == false then
  note(found, ARGV[3], 'bucket-not-listed', function() redis.call('ZADD', list, ARGV[3], ARGV[3]) end)
end
for i = 5, #ARGV do
  local problem = problem_of(ARGV[i])
  if problem then note(found, ARGV[i], problem) end
end
return found
