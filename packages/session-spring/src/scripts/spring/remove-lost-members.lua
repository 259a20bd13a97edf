#!lua flags=allow-oom
--[[
  remove-lost-members: removes members of an index of Spring whose sessions are gone.

  KEYS[1] index
  KEYS[2..] the session hash of each member
  ARGV[1..] members, as they are stored

  Returns nothing
]]
local index, keys, members = KEYS[1], KEYS, ARGV

for i, member in ipairs(members) do
  if redis.call('EXISTS', keys[i + 1]) == 0 then redis.call('SREM', index, member) end
end
