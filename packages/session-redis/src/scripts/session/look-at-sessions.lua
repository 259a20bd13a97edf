#!lua flags=no-writes
--[[
  look-at-sessions: counts the sessions of some buckets, and with the first of them those of the sorted set.

  KEYS[1] bucket list
  KEYS[2] the sorted set
  ARGV[1] prefix of the partition's keys
  ARGV[2] place of the first bucket in the list
  ARGV[3] how many buckets at most

  Returns how many sessions there are, how long ago the oldest end was due that nobody has claimed, in ms, and how many buckets
  were read. A key of a wrong type counts as empty.
]]
-- include: clock, types
local list, set, prefix, first, most = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now, sessions, overdue = now_in_ms(), 0, 0
local function note_overdue(at) overdue = math.max(overdue, now - at) end

local minutes = read('ZRANGE', list, first, first + most - 1) or {}
for _, minute in ipairs(minutes) do
  local members = read('SCARD', prefix .. 'expirations:' .. minute) or 0
  sessions = sessions + members
  if members > 0 then note_overdue(tonumber(minute) or now) end
end
if first == 0 then
  sessions = sessions + (read('ZCARD', set) or 0)
  local earliest = read('ZRANGE', set, 0, 0, 'WITHSCORES') or {}
  if earliest[2] then note_overdue(tonumber(earliest[2])) end
end
return { sessions, overdue, #minutes }
