#!lua flags=allow-oom
--[[
  verify-group: looks whether events that a group has read are there, and whether those that wait for a retry are known to.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  ARGV[1] 1: mend what is wrong
  ARGV[2] group
  ARGV[3..] positions

  Returns each position that is wrong, and the rule that it breaks, in turn
]]
-- include: clock, digits, findings, groups, keys, pending
local events, failing, retries = KEYS[1], KEYS[2], KEYS[3]
local found, group, now = findings(ARGV[1]), ARGV[2], now_in_ms()

local function forget(position)
  redis.call('HDEL', failing, position)
  redis.call('ZREM', retries, position)
end

-- Without the group, nothing is pending.
local has_group = groups_of(events)[group] ~= nil

for i = 3, #ARGV do
  local position = ARGV[i]
  local pending = has_group and pending_at(events, group, position)
  if not pending then
    local is_known = read('HEXISTS', failing, position) == 1 or read('ZSCORE', retries, position)
    if is_known then note(found, position, 'failure-without-event', function() forget(position) end) end
  elseif #redis.call('XRANGE', events, position, position) == 0 then
    note(found, position, 'pending-without-event', function() settle(events, group, failing, retries, position) end)
  elseif pending[2] == RETRIES_CONSUMER and not read('ZSCORE', retries, position) then
    note(found, position, 'retry-not-scheduled', function() redis.call('ZADD', retries, digits(now), position) end)
  end
end
return found
