#!lua flags=no-writes
--[[
  read-events: reads the events after a position, for a reader outside of the groups. Tells it when events that it has
  not read are gone.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] which events have made room for ends
  ARGV[1] position of the last event that it has read; empty for a new reader, which begins after the last event
  ARGV[2] at most how many events
  ARGV[3] position up to which the reader knows that such events are gone
  ARGV[4] 1: it has read the event at its position, so that this event was in the stream
  ARGV[5..] the types of events that the reader wants

  Returns
    {'read', events}       each event is {position, fields and values in turn}
    {'begin', position, time}  the position of the last event, after which a new reader begins, and the time in epoch ms
    {'gap', position}      unread events are gone; continue after this position
    {'thinned', position}  unread events up to this position, of a type that the reader wants, have made room for ends.
                           All ends are still there
]]
-- include: clock, fields, positions
local events, trimmed_key, thinned = KEYS[1], KEYS[2], KEYS[3]
local position, limit, known, has_read = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'

local exists = redis.call('EXISTS', events) == 1
local info = exists and named(redis.call('XINFO', 'STREAM', events)) or {}
local last = info['last-generated-id'] or '0-0'
if position == '' then return { 'begin', last, now_in_ms() } end

-- Redis has lost the stream or its end. The reader may have read what is left; if it has not, the gap covers that too.
if before(last, position) then return { 'gap', last } end
local trimmed = trimmed_position(events, trimmed_key)
if before(position, trimmed) then return { 'gap', trimmed } end
local unread = redis.call('XRANGE', events, has_read and position or '(' .. position, '+', 'COUNT', limit + 1)
if unread[1] and unread[1][1] == position then
  table.remove(unread, 1)
elseif has_read and before(trimmed, position) and before(info['max-deleted-entry-id'], position) then
  -- Redis has lost it, and others have recorded events since then. It was neither trimmed nor deleted.
  return { 'gap', position }
end
if before(known, position) then known = position end
local gone = known
for i = 5, #ARGV do
  local dropped = redis.call('HGET', thinned, ARGV[i])
  if dropped and before(gone, dropped) then gone = dropped end
end
if gone ~= known then return { 'thinned', gone } end
if #unread > limit then table.remove(unread) end
return { 'read', unread }
