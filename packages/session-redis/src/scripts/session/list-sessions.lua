#!lua flags=allow-oom
--[[
  list-sessions: reads a page of an index, the latest sign-ins first, with the times of its live sessions. Removes ids that
  a long outage left there. A page has all entries of each score that it has, and a rotation keeps the score, so between two
  pages no session moves from what was not read to what was.

  KEYS[1] index
  ARGV[1] prefix of the partition's keys
  ARGV[2] highest score of the page, as ZRANGE takes it: +inf, or "(" and the lowest score of the page before
  ARGV[3] lowest score of the last page, as ZRANGE takes it
  ARGV[4] about how many entries to read

  Returns the lowest score of the page, empty when this is the last page; the highest score of the index, empty when there
  is none; and for each live session its id, the time to live of its shadow key, and its times and its device
]]
-- include: keys
local index, prefix, highest, lowest, size = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- The ids of the page, and its lowest score; empty when it is the last page.
local function page_of(found)
  local ids = {}
  for i = 1, #found, 2 do table.insert(ids, found[i]) end
  if #ids < size then return ids, '' end
  local last = found[#found]
  for i = #found, 2, -2 do
    if found[i] == last then table.remove(ids) end
  end
  for _, id in ipairs(redis.call('ZRANGE', index, last, last, 'BYSCORE')) do table.insert(ids, id) end
  return ids, last
end

local found = redis.call('ZRANGE', index, highest, lowest, 'BYSCORE', 'REV', 'LIMIT', 0, size, 'WITHSCORES')
local latest = redis.call('ZRANGE', index, 0, 0, 'REV', 'WITHSCORES')[2] or ''
local ids, last = page_of(found)
local reply, lost = { last, latest }, {}
for _, id in ipairs(ids) do
  local key = prefix .. 'sessions:' .. id
  local left = redis.call('PTTL', prefix .. 'sessions:expires:' .. id)
  -- A stray key in the place of a session hash is no session, nor is one in the place of a shadow key.
  local is_stray = left == -1 and read('GET', prefix .. 'sessions:expires:' .. id) == nil
  local fields = read('HMGET', key, 'creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'authenticatedAt', 'device')
  if left ~= -2 and fields and not is_stray then
    table.insert(reply, { id, left, unpack(fields) })
  elseif redis.call('EXISTS', key) == 0 then
    table.insert(lost, id)
  end
end
for i = 1, #lost, 4000 do redis.call('ZREM', index, unpack(lost, i, math.min(i + 3999, #lost))) end
return reply
