#!lua flags=no-writes
--[[
  look-at-groups: tells how far the groups are behind, and what they have lost.

  KEYS[1] events stream
  KEYS[2] how many events each group has lost
  KEYS[3] how many dead letters each group has lost
  KEYS[4] index of the dead letters
  ARGV[1] at most how many unread events of a group to count

  Returns for each group its name, and these numbers: the events that it has not read, the age of the oldest of them in ms, the
  events that it has read and not finished, those of them that wait for a retry, its dead letters, and the two of what it has
  lost.
]]
-- include: clock, groups
local events, dropped, lost, letters, most = KEYS[1], KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[1])

local now = now_in_ms()
local replies = {}
for name, group in pairs(groups_of(events)) do
  local unread = redis.call('XRANGE', events, '(' .. group['last-delivered-id'], '+', 'COUNT', most)
  local oldest = unread[1] and tonumber(string.match(unread[1][1], '^%d+')) or now
  table.insert(replies, {
    name, #unread, math.max(0, now - oldest), group.pending, redis.call('ZCARD', events .. ':retries:' .. name),
    redis.call('ZLEXCOUNT', letters, '[' .. name .. '\n', '(' .. name .. '\n\255'),
    tonumber(redis.call('HGET', dropped, name) or 0), tonumber(redis.call('HGET', lost, name) or 0),
  })
end
return replies
