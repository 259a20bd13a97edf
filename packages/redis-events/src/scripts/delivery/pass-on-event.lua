#!lua flags=allow-oom
--[[
  pass-on-event: leaves an entry to the other instances of the group, because this one has no handler for it. It waits for a retry
  that counts as none, longer the older it is.

  KEYS[1] events stream
  KEYS[2] retries of the group
  KEYS[3] which events each group wants
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] position
  ARGV[4] what the handlers of the others would have to want
  ARGV[5] shortest wait in ms
  ARGV[6] longest wait in ms

  Returns
    'passed'
    'unwanted'  no instance of the group has a handler for it, nor had one when it was recorded
    'lost'      the entry no longer belongs to this instance
]]
-- include: clock, digits, fields, groups, pending, positions, signal, types, words
local events, retries, wanted = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, position, want = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
assert_types({ { events, 'stream' }, { retries, 'zset' }, { wanted, 'hash' } })

-- Whether it was recorded for the group, or replayed for it: its handler has gone, and may come back.
local function is_for_group()
  local entry = redis.call('XRANGE', events, position, position)[1]
  local fields = entry and named(entry[2]) or {}
  if fields.group then return fields.group == group end
  for _, each in ipairs(fields.groups and cjson.decode(fields.groups) or {}) do
    if each == group then return true end
  end
  return false
end

if not words_in(redis.call('HGET', wanted, group) or '')[want] and not is_for_group() then return 'unwanted' end
local pending = pending_at(events, group, position, consumer)
if not pending then return 'lost' end
local now = now_in_ms()
local age = now - parts(position)
-- A fraction of its age: in a large group, it may have to be passed on many times before the right instance takes it.
local wait = math.max(tonumber(ARGV[5]), math.min(age / 8, tonumber(ARGV[6])))
redis.call('XCLAIM', events, group, RETRIES_CONSUMER, 0, position, 'RETRYCOUNT', pending[4] - 1, 'JUSTID')
redis.call('ZADD', retries, digits(now + wait), position)
-- Of several partitions, the others look at each only once per lease unless they know of something there.
signal(events, 'retries')
return 'passed'
