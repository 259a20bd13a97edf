#!lua flags=allow-oom
--[[
  release-events: an instance that stops leaves what it has not finished to the others of its group, due at once, and its
  group, too, when that was all.

  KEYS[1] events
  KEYS[2] retries
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3..] positions that it keeps: it is still working on them

  Returns
    'left'
    'staying'  it has kept something
]]
-- include: delivery
local problem = wrong_type({ { KEYS[1], 'stream' }, { KEYS[2], 'zset' } })
if problem then return problem end
local kept, keeps = {}, false
for i = 3, #ARGV do kept[ARGV[i]] = true end
local now = integer(now_in_ms())
-- One instance has as many at most as it handles at a time, and the few whose delivery it did not hear of.
for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1000000, ARGV[2])) do
  local position, deliveries = pending[1], pending[4]
  if kept[position] then
    keeps = true
  else
    -- It has not failed, so this delivery does not count.
    redis.call('XCLAIM', KEYS[1], ARGV[1], waiting, 0, position, 'RETRYCOUNT', deliveries - 1, 'JUSTID')
    redis.call('ZADD', KEYS[2], now, position)
  end
end
if keeps then return 'staying' end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 'left'
