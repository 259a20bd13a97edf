#!lua flags=no-writes
--[[
  read-events: reads the events after a position, for a reader outside of the groups. Tells it when events that it has
  not read are gone.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] which creations have made room for ends
  ARGV[1] position of the last event that it has read; empty for a new reader, which begins after the last event
  ARGV[2] at most how many events
  ARGV[3] position up to which the reader knows that creations are gone; empty: it wants no creations

  Returns
    {'read', events}       each event is {position, fields and values in turn}
    {'begin', position}    the position after which a new reader begins
    {'gap', position}      unread events are gone; continue after this position
    {'thinned', position}  unread creations up to this position are gone. All other events are still there
]]
-- include: server, stream
local position = ARGV[1]
local exists = redis.call('EXISTS', events) == 1
local last = exists and named(redis.call('XINFO', 'STREAM', events))['last-generated-id'] or '0-0'
if position == '' then return { 'begin', last } end

-- Redis has lost the stream or its end. The reader may have read what is left; if it has not, the gap covers that too.
if before(last, position) then return { 'gap', last } end
local trimmed = trimmed_position(KEYS[2])
if before(position, trimmed) then return { 'gap', trimmed } end
local dropped = ARGV[3] ~= '' and redis.call('HGET', KEYS[3], 'dropped')
if dropped and before(position, dropped) and before(ARGV[3], dropped) then return { 'thinned', dropped } end
return { 'read', redis.call('XRANGE', events, '(' .. position, '+', 'COUNT', ARGV[2]) }
