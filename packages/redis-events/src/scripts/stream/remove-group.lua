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
-- include: groups, types
local events, failing, retries, handlers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dropped, wanted, lost_letters = KEYS[5], KEYS[6], KEYS[7]
local group, liveness = ARGV[1], tonumber(ARGV[2])
assert_types({
  { events, 'stream' }, { failing, 'hash' }, { retries, 'zset' }, { handlers, 'hash' }, { dropped, 'hash' },
  { wanted, 'hash' }, { lost_letters, 'hash' },
})
local exists = groups_of(events)[group]
for _, instance in ipairs(exists and instances_of(events, group) or {}) do
  if instance.idle < liveness then return 'live' end
end

if exists then redis.call('XGROUP', 'DESTROY', events, group) end
redis.call('DEL', failing, retries)
for _, records in ipairs({ handlers, dropped, wanted, lost_letters }) do redis.call('HDEL', records, group) end
return exists and 'removed' or 'unknown'
