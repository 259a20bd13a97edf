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
-- include: clock, digits, groups, pending, types
local events, failing, retries = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, lease, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
assert_types({ { events, 'stream' }, { failing, 'hash' }, { retries, 'zset' } })
local claimed = {}

local function claim_entry(position, deliveries)
  local entry = redis.call('XCLAIM', events, group, consumer, 0, position)[1]
  redis.call('ZREM', retries, position)
  if entry then
    table.insert(claimed, { position, entry[2], deliveries, redis.call('HGET', failing, position) })
  else
    -- It was trimmed.
    settle(events, group, failing, retries, position)
  end
end

for _, position in ipairs(redis.call('ZRANGEBYSCORE', retries, '-inf', digits(now_in_ms()), 'LIMIT', 0, limit)) do
  local pending = pending_at(events, group, position)
  if pending then claim_entry(position, pending[4]) else settle(events, group, failing, retries, position) end
end
-- One instance after the other: in a list of all pending entries, those that wait for a retry would hide the others.
for _, instance in ipairs(instances_of(events, group)) do
  local rest = limit - #claimed
  if rest > 0 then
    local abandoned = redis.call('XPENDING', events, group, 'IDLE', lease, '-', '+', rest, instance.name)
    for _, pending in ipairs(abandoned) do claim_entry(pending[1], pending[4]) end
  end
end
return claimed
