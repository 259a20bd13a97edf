#!lua flags=no-writes
--[[
  read-events: reads the events after a position, for a reader outside of the groups. Tells it when events that it has
  not read are gone.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  ARGV[1] position of the last event that it has read; empty for a new reader, which begins after the last event
  ARGV[2] at most how many events

  Returns
    {'read', events}     each event is {position, fields and values in turn}
    {'begin', position}  the position after which a new reader begins
    {'gap', position}    unread events are gone; continue after this position
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
return { 'read', redis.call('XRANGE', events, '(' .. position, '+', 'COUNT', ARGV[2]) }
