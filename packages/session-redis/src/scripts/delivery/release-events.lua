#!lua flags=allow-oom
--[[
  release-events: gives the pending entries of an instance that stops to the other instances of its group, due at once.
  When it keeps none, it also leaves the group.

  KEYS[1] events stream
  KEYS[2] retries of the group
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3..] positions of the entries that it keeps, because it still handles them

  Returns
    'left'
    'staying'  it keeps entries
]]
-- paste: pending
local problem = wrong_type({ { KEYS[1], 'stream' }, { KEYS[2], 'zset' } })
if problem then return problem end
local kept, keeps, has_released = {}, false, false
for i = 3, #ARGV do kept[ARGV[i]] = true end
local now = integer(now_in_ms())
-- An instance has few: as many as it handles at a time, and those of a reply that was lost.
for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1000000, ARGV[2])) do
  local position, deliveries = pending[1], pending[4]
  if kept[position] then
    keeps = true
  else
    -- It has not failed, so do not count this delivery.
    redis.call('XCLAIM', KEYS[1], ARGV[1], retries_consumer, 0, position, 'RETRYCOUNT', deliveries - 1, 'JUSTID')
    redis.call('ZADD', KEYS[2], now, position)
    has_released = true
  end
end
-- As in includes/signal.
if has_released and string.find(KEYS[1], '{', 1, true) then redis.pcall('SPUBLISH', KEYS[1], 'retries') end
if keeps then return 'staying' end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 'left'
