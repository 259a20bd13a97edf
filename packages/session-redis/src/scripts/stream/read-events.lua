#!lua flags=no-writes
--[[
  read-events: the events behind a position, for a reader that is in no group; and whether there were others in between
  that it can not read any more.

  KEYS[1] events
  KEYS[2] position of the last trimmed event
  ARGV[1] position of the last event that was read; empty: the reader is new, and begins behind the last event
  ARGV[2] how many to read at the most

  Returns
    {'read', events}     each a position with its fields and values in turn
    {'begin', position}  where a new reader begins
    {'gap', position}    events are gone; go on from this position
]]
-- include: server, stream
local position = ARGV[1]
local exists = redis.call('EXISTS', events) == 1
local last = exists and named(redis.call('XINFO', 'STREAM', events))['last-generated-id'] or '0-0'
if position == '' then return { 'begin', last } end

-- Redis has lost the stream, or the end of it. What there is may have been read, and the gap covers it if it has not.
if before(last, position) then return { 'gap', last } end
local trimmed = trimmed_position(KEYS[2])
if before(position, trimmed) then return { 'gap', trimmed } end
return { 'read', redis.call('XRANGE', events, '(' .. position, '+', 'COUNT', ARGV[2]) }
