#!lua flags=allow-oom
--[[
  claim-events: gives an instance pending entries of its group: first those whose retry is due, then those whose lease
  has ended because their instance did not renew it.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] lease in ms
  ARGV[4] at most how many entries

  Returns a list of
    {position, fields and values in turn, number of earlier deliveries, record of its failures or nothing}
]]
-- paste: pending, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' } })
if problem then return problem end
local limit = tonumber(ARGV[4])
local claimed = {}

local function claim(position, deliveries)
  local entry = redis.call('XCLAIM', events, ARGV[1], ARGV[2], 0, position)[1]
  redis.call('ZREM', KEYS[3], position)
  if entry then table.insert(claimed, { position, entry[2], deliveries, redis.call('HGET', KEYS[2], position) })
  -- It was trimmed.
  else finish(events, ARGV[1], KEYS[2], KEYS[3], position) end
end

for _, position in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', integer(now_in_ms()), 'LIMIT', 0, limit)) do
  local pending = pending_at(events, ARGV[1], position)
  if pending then claim(position, pending[4]) else finish(events, ARGV[1], KEYS[2], KEYS[3], position) end
end
-- One consumer after the other: in a list of all pending entries, those that wait for a retry would hide the others.
for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, ARGV[1])) do
  local name, rest = named(reply).name, limit - #claimed
  if name ~= retries_consumer and rest > 0 then
    local abandoned = redis.call('XPENDING', events, ARGV[1], 'IDLE', ARGV[3], '-', '+', rest, name)
    for _, pending in ipairs(abandoned) do claim(pending[1], pending[4]) end
  end
end
return claimed
