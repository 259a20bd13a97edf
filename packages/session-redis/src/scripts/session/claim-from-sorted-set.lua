#!lua flags=allow-oom
--[[
  claim-from-sorted-set: takes the sessions out of the sorted set whose time has come, the earliest first, and claims
  them as claim-expired does. What one call takes no other one meets, and what a call that fails has not claimed is still
  there.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] dead letters
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3] most bytes of the partition's dead letters
  ARGV[4] how many sessions at most
  ARGV[5] how far to look ahead, in ms
  ARGV[6] time of the last session of the call before, when that looked ahead; empty: begin with the first
  ARGV[7] id of that session

  Returns the time in epoch ms; ms until the earliest session of the set is due, empty when there is none; and for each
  session its id, its time in the set, and a word or number
    'claimed'  this call has recorded the end of the session; also when only the member was left of it. A number says the
               same, and how many ms after the end that was
    'alive'    the session has not ended
    'already'  the end was recorded before
    'corrupt'  a key has a wrong type: it is a dead letter now. When the stray key is an index, the end of the session is
               recorded as well
]]
-- include: clock, claim
local partition, dead = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }, KEYS[3]
local retention, most_bytes, most, ahead = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local last_time, last_id = ARGV[6], ARGV[7]
local set, now = partition.prefix .. 'ends', now_in_ms()

-- The ids and times of the next sessions, in turn.
local function next_sessions()
  local found, first = {}, '-inf'
  if last_time ~= '' then
    local same, seen = redis.call('ZRANGE', set, last_time, last_time, 'BYSCORE'), 0
    for i, id in ipairs(same) do
      if id == last_id then seen = i end
    end
    for i = seen + 1, math.min(#same, seen + most) do
      found[#found + 1], found[#found + 2] = same[i], last_time
    end
    if #same - seen < most then first = '(' .. last_time end
  end
  if #found == 2 * most then return found end
  -- A shadow key still exists in the millisecond of its end.
  local limit = '(' .. digits(now + ahead)
  local others = redis.call('ZRANGE', set, first, limit, 'BYSCORE', 'LIMIT', 0, most - #found / 2, 'WITHSCORES')
  for _, each in ipairs(others) do found[#found + 1] = each end
  return found
end

local claims = begin_claims(partition, { is_set = true }, now, retention, dead, most_bytes)
read_typed('zset', 'ZCARD', set)
local found, reply, sessions = next_sessions(), { now, '' }, partition.prefix .. 'sessions:'
for i = 1, #found, 2 do
  local id = found[i]
  local outcome = claim(claims, 'expires:' .. id, sessions .. id, sessions .. 'expires:' .. id, true)
  for _, each in ipairs({ id, found[i + 1], outcome }) do table.insert(reply, each) end
end
finish_claims(claims)
local earliest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
if earliest then reply[2] = math.max(0, earliest - now + 1) end
return reply
