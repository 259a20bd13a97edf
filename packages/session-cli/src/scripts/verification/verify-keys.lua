#!lua flags=allow-oom
--[[
  verify-keys: looks whether keys have the type and the time to live that the data model says.

  KEYS the keys
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3] how long a key is kept that is set aside, in ms
  ARGV[4..] two for each key: its type, and its time to live: 'never', 'any', or how many ms it has at most

  Returns each wrong key, and the rule that it breaks, in turn
]]
-- include: findings
local found, prefix, kept_for = findings(ARGV[1]), ARGV[2], ARGV[3]

local function set_aside(key)
  local aside = prefix .. 'stray:' .. string.sub(key, #prefix + 1)
  redis.call('RENAME', key, aside)
  redis.call('PEXPIRE', aside, kept_for)
end

local function problem_of(key, kind, life)
  local actual = redis.call('TYPE', key).ok
  if actual == 'none' then return nil end
  if actual ~= kind then return 'wrong-type' end
  local stays = redis.call('PTTL', key) == -1
  if life == 'never' and not stays then return 'unexpected-expiry' end
  return tonumber(life) and stays and 'missing-expiry' or nil
end

local function mend(key, life, problem)
  if problem == 'wrong-type' then set_aside(key) end
  if problem == 'unexpected-expiry' then redis.call('PERSIST', key) end
  if problem == 'missing-expiry' then redis.call('PEXPIRE', key, life) end
end

for i, key in ipairs(KEYS) do
  local kind, life = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local problem = problem_of(key, kind, life)
  if problem then note(found, key, problem, function() mend(key, life, problem) end) end
end
return found
