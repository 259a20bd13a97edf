#!lua flags=no-writes
--[[
  count-events: counts the events after a position, a limited number per call. Redis' own lag of a group is wrong after
  unread events were trimmed.

  KEYS[1] events stream
  ARGV[1] position
  ARGV[2] at most how many events

  Returns
    {'all', count}
    {'more', count, position}  continue after this position
]]
local events, position, limit = KEYS[1], ARGV[1], tonumber(ARGV[2])

local entries = redis.call('XRANGE', events, '(' .. position, '+', 'COUNT', limit)
if #entries < limit then return { 'all', #entries } end
return { 'more', #entries, entries[#entries][1] }
