#!lua flags=allow-oom
--[[
  remove-incomplete-sessions: looks which session hashes of Spring lack one of the times that each has from its beginning.

  KEYS a session hash and its shadow key, in turn
  ARGV[1] 1: remove both

  Returns the number of each incomplete session
]]
local mends, reply = ARGV[1] == '1', {}

local function is_incomplete(key)
  if redis.call('TYPE', key).ok ~= 'hash' then return false end
  for _, time in ipairs(redis.call('HMGET', key, 'creationTime', 'lastAccessedTime', 'maxInactiveInterval')) do
    if not time then return true end
  end
  return false
end

for i = 1, #KEYS, 2 do
  if is_incomplete(KEYS[i]) then
    reply[#reply + 1] = (i + 1) / 2
    if mends then redis.call('UNLINK', KEYS[i], KEYS[i + 1]) end
  end
end
return reply
