#!lua flags=no-writes
--[[
  count-events: counts the events behind a position, a part of them at a time. Redis' own count of what a group has not
  read is wrong where something was trimmed unread.

  KEYS[1] events
  ARGV[1] position
  ARGV[2] how many to count at the most

  Returns
    {'all', count}
    {'more', count, position}  go on from this position
]]
local limit = tonumber(ARGV[2])
local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', limit)
if #entries < limit then return { 'all', #entries } end
return { 'more', #entries, entries[#entries][1] }
