#!lua flags=allow-oom
--[[
  verify-deadlines: looks whether deadlines are among those that are due, and stay until then.

  KEYS[1] sorted set of the names
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3] for how many ms it is known that a deadline has fired
  ARGV[4] all; misplaced: they belong to another partition
  ARGV[5..] members

  Returns each member that is wrong, and the rule that it breaks, in turn
]]
-- include: clock, deadline, findings
local names, prefix, known_for, found = KEYS[1], ARGV[2], ARGV[3], findings(ARGV[1])
local is_misplaced, now = ARGV[4] == 'misplaced', now_in_ms()

local function verify_waiting(member, hash, name, time)
  local due = prefix .. 'due:' .. name
  if redis.call('PTTL', hash) ~= -1 then
    note(found, member, 'deadline-expires', function() redis.call('PERSIST', hash) end)
  end
  local score = read('ZSCORE', due, member)
  if score == nil or tonumber(score or nil) == tonumber(time) then return end
  note(found, member, 'deadline-not-scheduled', function() note_due(due, names, name, member, tonumber(time)) end)
end

for i = 5, #ARGV do
  local hash = prefix .. 'deadlines:' .. ARGV[i]
  local fields = read('HMGET', hash, 'name', 'due', 'fired') or {}
  local due = fields[1] and tonumber(fields[2] or nil)
  if due and is_misplaced and due > now + 60000 then
    -- One that is due before could fire here, and once more where it has been moved to.
    note(found, ARGV[i], 'deadline-misplaced')
  elseif due then
    verify_waiting(ARGV[i], hash, fields[1], fields[2])
  elseif fields[3] and redis.call('PTTL', hash) == -1 then
    note(found, ARGV[i], 'fired-deadline-stays', function() redis.call('PEXPIRE', hash, known_for) end)
  end
end
return found
