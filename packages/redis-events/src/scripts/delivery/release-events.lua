#!lua flags=allow-oom
--[[
  release-events: gives the pending entries of an instance that stops to the other instances of its group, due at once,
  and tells them of all retries. When it holds none back, it also leaves the group.

  KEYS[1] events stream
  KEYS[2] retries of the group
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3..] positions of the entries that it holds back, because it still handles them

  Returns
    'left'
    'staying'  it holds entries back
]]
-- include: clock, digits, groups, signal, types
local events, retries = KEYS[1], KEYS[2]
local group, consumer, held = ARGV[1], ARGV[2], {}
for i = 3, #ARGV do held[ARGV[i]] = true end
assert_types({ { events, 'stream' }, { retries, 'zset' } })

local holds = false
local now = digits(now_in_ms())
-- An instance has few: as many as it handles at a time, and those of a reply that was lost.
for _, pending in ipairs(redis.call('XPENDING', events, group, '-', '+', 1000000, consumer)) do
  local position, deliveries = pending[1], pending[4]
  if held[position] then
    holds = true
  else
    -- It has not failed, so do not count this delivery.
    redis.call('XCLAIM', events, group, RETRIES_CONSUMER, 0, position, 'RETRYCOUNT', deliveries - 1, 'JUSTID')
    redis.call('ZADD', retries, now, position)
  end
end
-- Of several partitions, the others look at each only once per lease unless they know of something there. What failed
-- before, this instance alone may know of.
if redis.call('ZCARD', retries) > 0 then signal(events, 'retries') end
if holds then return 'staying' end
redis.call('XGROUP', 'DELCONSUMER', events, group, consumer)
return 'left'
