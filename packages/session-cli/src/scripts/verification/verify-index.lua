#!lua flags=allow-oom
--[[
  verify-index: looks whether ids in an index are those of sessions that have its value.

  KEYS[1] index
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3..] ids

  Returns each id that is wrong, and the rule that it breaks, in turn
]]
-- include: findings, index
local index, prefix, found = KEYS[1], ARGV[2], findings(ARGV[1])

local function is_recorded(field)
  for _, entry in ipairs(field and recorded_entries(prefix, field) or {}) do
    if entry.set == index then return true end
  end
  return false
end

local function problem_of(id)
  local key = prefix .. 'sessions:' .. id
  local fields = read('ZSCORE', index, id) and read('HMGET', key, 'ended', 'index')
  if not fields then return nil end
  if redis.call('EXISTS', key) == 0 or fields[1] then return 'index-entry-without-session' end
  return not is_recorded(fields[2]) and 'index-entry-unrecorded' or nil
end

for i = 3, #ARGV do
  local problem = problem_of(ARGV[i])
  if problem then note(found, ARGV[i], problem, function() redis.call('ZREM', index, ARGV[i]) end) end
end
return found
