#!lua flags=allow-oom
--[[
  claim-due: takes the sessions out of the sorted set whose time has come, the earliest first, and claims those that have
  expired, as claim-expired does. A session that is still alive moves to where its end belongs. What one call takes no other
  one meets, and what a call that fails has not claimed is still there.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] dead letters
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3] most bytes of the partition's dead letters
  ARGV[4] how many sessions at most
  ARGV[5] how far to look ahead, in ms
  ARGV[6] time of the last session of the call before, when that looked ahead; empty: begin with the first
  ARGV[7] id of that session

  Returns the time in epoch ms; ms until the earliest session of the set is due, empty when there is none; and for each
  session its id, its time in the set, and a word
    'claimed'  this call has recorded the end of the session; also when only the member was left of it
    'alive'    the session has not ended
    'already'  the end was recorded before
    'corrupt'  a key has a wrong type: it is a dead letter now. When the stray key is an index, the end of the session is
               recorded as well
]]
local bucket_list, events, dead = KEYS[1], KEYS[2], KEYS[3]
local minute, is_set, kept, most_bytes = nil, true, ARGV[2], ARGV[3]
-- paste: claim
local set, most, first = prefix .. 'ends', tonumber(ARGV[4]), '-inf'
-- A shadow key still exists in the millisecond of its end.
local limit = '(' .. string.format('%.0f', now + ARGV[5])
if read('ZCARD', set) == nil then error(wrong_type('zset', set)) end
local reply = { now, '' }
local function take(id, time)
  local n = #reply
  reply[n + 1], reply[n + 2] = id, time
  reply[n + 3] = claim('expires:' .. id, prefix .. 'sessions:' .. id, prefix .. 'sessions:expires:' .. id, true)
end
local found = {}
if ARGV[6] ~= '' then
  local same = redis.call('ZRANGE', set, ARGV[6], ARGV[6], 'BYSCORE')
  local seen = 0
  for i, id in ipairs(same) do
    if id == ARGV[7] then seen = i end
  end
  for i = seen + 1, math.min(#same, seen + most) do
    found[#found + 1], found[#found + 2] = same[i], ARGV[6]
  end
  if #same - seen < most then first = '(' .. ARGV[6] end
end
if #found < 2 * most then
  local others = redis.call('ZRANGE', set, first, limit, 'BYSCORE', 'LIMIT', 0, most - #found / 2, 'WITHSCORES')
  for _, each in ipairs(others) do found[#found + 1] = each end
end
for i = 1, #found, 2 do take(found[i], found[i + 1]) end
finish()
local earliest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
if earliest then reply[2] = math.max(0, earliest - now + 1) end
return reply
