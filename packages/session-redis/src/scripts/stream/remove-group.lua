#!lua flags=allow-oom
--[[
  remove-group: removes a group and all that is recorded of it, unless one of its instances is alive.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  KEYS[4] handlers of all groups
  KEYS[5] dropped events of all groups
  KEYS[6] which events each group wants
  KEYS[7] counts of lost dead letters by group
  ARGV[1] group
  ARGV[2] idle time in ms below which an instance is alive

  Returns
    'removed'
    'live'
    'unknown'  there was no such group
]]
-- paste: pending, stream
local group = ARGV[1]
local problem = wrong_type({
  { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' }, { KEYS[4], 'hash' }, { KEYS[5], 'hash' },
  { KEYS[6], 'hash' }, { KEYS[7], 'hash' },
})
if problem then return problem end
local exists = groups_of_stream()[group]
for _, reply in ipairs(exists and redis.call('XINFO', 'CONSUMERS', events, group) or {}) do
  local consumer = named(reply)
  if consumer.name ~= retries_consumer and consumer.idle < tonumber(ARGV[2]) then return 'live' end
end

if exists then redis.call('XGROUP', 'DESTROY', events, group) end
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('HDEL', KEYS[4], group)
redis.call('HDEL', KEYS[5], group)
redis.call('HDEL', KEYS[6], group)
redis.call('HDEL', KEYS[7], group)
return exists and 'removed' or 'unknown'
