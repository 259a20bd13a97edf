#!lua flags=allow-oom
--[[
  claim-events: gives an instance entries of its group that nobody works on: first those whose next attempt is due, then
  those whose instance has not renewed its lease.

  KEYS[1] events
  KEYS[2] failing
  KEYS[3] retries
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] lease in ms
  ARGV[4] how many entries at most

  Returns a list of
    {position, fields and values in turn, how often it was delivered before, record of its failures or nothing}
]]
-- include: delivery, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' } })
if problem then return problem end
local limit = tonumber(ARGV[4])
local taken = {}

local function take(position, deliveries)
  local entry = redis.call('XCLAIM', events, ARGV[1], ARGV[2], 0, position)[1]
  redis.call('ZREM', KEYS[3], position)
  if entry then table.insert(taken, { position, entry[2], deliveries, redis.call('HGET', KEYS[2], position) })
  -- Trimmed since.
  else finish(events, ARGV[1], KEYS[2], KEYS[3], position) end
end

for _, position in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', integer(now_in_ms()), 'LIMIT', 0, limit)) do
  local pending = pending_at(events, ARGV[1], position)
  if pending then take(position, pending[4]) else finish(events, ARGV[1], KEYS[2], KEYS[3], position) end
end
-- One consumer after the other: among all that is pending, what waits would hide the rest.
for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, ARGV[1])) do
  local name, rest = named(reply).name, limit - #taken
  if name ~= waiting and rest > 0 then
    local abandoned = redis.call('XPENDING', events, ARGV[1], 'IDLE', ARGV[3], '-', '+', rest, name)
    for _, pending in ipairs(abandoned) do take(pending[1], pending[4]) end
  end
end
return taken
