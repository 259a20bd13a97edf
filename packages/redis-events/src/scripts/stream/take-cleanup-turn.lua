#!lua flags=allow-oom
--[[
  take-cleanup-turn: lets the instances take turns with the cleanup of a partition: it belongs to the first one that asks, for a
  while. Then any of them may take it over.

  KEYS[1] whose turn it is
  KEYS[2] events stream
  KEYS[3] dead letters
  KEYS[4..] sorted sets of what is due, by epoch ms
  ARGV[1] name of the instance
  ARGV[2] how long the turn takes, in ms
  ARGV[3] grace in ms
  ARGV[4] retention in ms
  ARGV[5] at most how many events to keep

  Returns
    'due'    it is the turn of this instance
    'clean'  it is, but there is nothing to clean up
    'taken'  it is the turn of another instance
]]
-- include: clock
-- Milliseconds. The clocks of two instances, by which they ask, may differ so much.
local SLACK = 60000
local turn, events, dead = KEYS[1], KEYS[2], KEYS[3]
local instance, duration = ARGV[1], tonumber(ARGV[2])
local grace, retention, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

-- Its holder has died since the clock was set back, or somebody else has written it.
local function is_endless()
  local left = redis.call('PTTL', turn)
  return left < 0 or left > duration + SLACK
end

local holder = redis.pcall('GET', turn)
if type(holder) == 'string' and holder ~= instance and not is_endless() then return 'taken' end
-- A stray key in its place stays: then every instance cleans up.
if type(holder) ~= 'table' then redis.call('SET', turn, instance, 'PX', duration) end
local stream = { events = events, now = now_in_ms(), grace = grace, retention = retention }
for i = 4, #KEYS do
  local first = redis.pcall('ZRANGEBYSCORE', KEYS[i], '-inf', stream.now, 'LIMIT', 0, 1)
  -- A stray key is for the cleanup itself to report.
  if first.err or first[1] then return 'due' end
end
local oldest = redis.pcall('XRANGE', events, '-', '+', 'COUNT', 1)
if oldest.err then return 'due' end
if oldest[1] then
  -- include: trimming
  if may_have_to_trim(stream, oldest[1], most) then return 'due' end
end
if redis.pcall('XLEN', dead) ~= 0 then return 'due' end
return 'clean'
