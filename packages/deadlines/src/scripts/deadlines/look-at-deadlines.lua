#!lua flags=no-writes
--[[
  look-at-deadlines: counts the deadlines that wait, by their names.

  KEYS[1] sorted set of the names
  ARGV[1] prefix of the partition's keys

  Returns for each name of which some wait: the name, how many, and how long ago the first of them was due, in ms; 0 when it is
  not due yet. A key of a wrong type counts as empty.
]]
-- include: clock, types
local names, prefix = KEYS[1], ARGV[1]

local now, reply = now_in_ms(), {}
for _, name in ipairs(read('ZRANGE', names, 0, -1) or {}) do
  local due = prefix .. 'due:' .. name
  local first = read('ZRANGE', due, 0, 0, 'WITHSCORES') or {}
  if first[2] then
    local overdue = math.max(0, now - tonumber(first[2]))
    for _, each in ipairs({ name, redis.call('ZCARD', due), overdue }) do reply[#reply + 1] = each end
  end
end
return reply
