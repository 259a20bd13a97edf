#!lua flags=allow-oom
--[[
  pick-up-events: gives an instance pending entries of its group: first those whose retry is due, then those whose lease
  has ended because their instance did not renew it. Times ahead of the clock, which was set back since then, begin now.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] lease in ms
  ARGV[4] at most how many entries
  ARGV[5] longest back-off in ms: no retry waits longer

  Returns a list of
    {position, fields and values in turn, number of earlier deliveries, record of its failures or nothing}
]]
-- include: clock, digits, groups, pending, types
local events, failing, retries = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, lease, limit, longest_back_off = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
assert_types({ { events, 'stream' }, { failing, 'hash' }, { retries, 'zset' } })
local picked_up, now = {}, now_in_ms()

local function pick_up_entry(position, deliveries)
  local entry = redis.call('XCLAIM', events, group, consumer, 0, position)[1]
  redis.call('ZREM', retries, position)
  if entry then
    table.insert(picked_up, { position, entry[2], deliveries, redis.call('HGET', failing, position) })
  else
    -- It was trimmed.
    settle(events, group, failing, retries, position)
  end
end

local function pick_up_retries(from, to)
  for _, position in ipairs(redis.call('ZRANGEBYSCORE', retries, from, to, 'LIMIT', 0, limit - #picked_up)) do
    local pending = pending_at(events, group, position)
    if pending then pick_up_entry(position, pending[4]) else settle(events, group, failing, retries, position) end
  end
end

-- Redis shows no idle time for one that lies ahead of the clock: an instance that has died would keep its entries.
local function restart_idle_times(instance)
  for _, pending in ipairs(redis.call('XPENDING', events, group, '-', '+', limit, instance.name)) do
    if pending[3] == 0 then redis.call('XCLAIM', events, group, instance.name, 0, pending[1], 'JUSTID') end
  end
  note_instance(events, group, instance.name)
end

pick_up_retries('-inf', digits(now))
pick_up_retries(digits(now + longest_back_off + 1), '+inf')
-- One instance after the other: in a list of all pending entries, those that wait for a retry would hide the others.
for _, instance in ipairs(instances_of(events, group)) do
  if instance.idle == 0 then restart_idle_times(instance) end
  local rest = limit - #picked_up
  if rest > 0 then
    local abandoned = redis.call('XPENDING', events, group, 'IDLE', lease, '-', '+', rest, instance.name)
    for _, pending in ipairs(abandoned) do pick_up_entry(pending[1], pending[4]) end
  end
end
return picked_up
