#!lua flags=allow-oom
--[[
  take-cleanup: lets the instances take turns with the cleanup of a partition: it belongs to the first one that asks, for a
  while. Then any of them may take it over.

  KEYS[1] whose turn it is
  KEYS[2] events stream
  KEYS[3] dead letters
  KEYS[4..] sorted sets of what is due, by epoch ms
  ARGV[1] name of the instance
  ARGV[2] how long the turn takes, in ms
  ARGV[3] age in ms from which events may be trimmed
  ARGV[4] number of events above which younger ones may be trimmed, too

  Returns
    'due'    it is the turn of this instance
    'clean'  it is, but there is nothing to clean up
    'taken'  it is the turn of another instance
]]
-- include: clock
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'string' and holder ~= ARGV[1] then return 'taken' end
-- A stray key in its place stays: then every instance cleans up.
if type(holder) ~= 'table' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
for i = 4, #KEYS do
  local first = redis.pcall('ZRANGEBYSCORE', KEYS[i], '-inf', now, 'LIMIT', 0, 1)
  -- A stray key is for the cleanup itself to report.
  if first.err or first[1] then return 'due' end
end
local events = redis.pcall('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
if events.err then return 'due' end
if events[1] then
  local oldest = tonumber(string.match(events[1][1], '^%d+'))
  if oldest <= now - ARGV[3] or redis.call('XLEN', KEYS[2]) > tonumber(ARGV[4]) then return 'due' end
end
if redis.pcall('XLEN', KEYS[3]) ~= 0 then return 'due' end
return 'clean'
