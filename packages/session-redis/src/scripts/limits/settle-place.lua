#!lua flags=allow-oom
--[[
  settle-place: ends what reserve-place has begun. A session that was stored keeps its place, and what has ended for it gives
  its place up. A session that was not stored gives up its own, and nothing ends for it.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session has, or was to have
  ARGV[2] 1: the session was stored
  ARGV[3..] ids of the sessions that have ended for this one, and the one that it had before

  Returns
    'done'
]]
-- include: ledger
local key, id, is_stored = KEYS[1], ARGV[1], ARGV[2] == '1'

local own = place_in(id, redis.call('HGET', key, id))
if not is_stored then
  redis.call('HDEL', key, id, '?' .. id)
elseif own then
  own.latest = 0
  store_place(key, own)
end
for i = 3, #ARGV do
  local place = place_in(ARGV[i], redis.call('HGET', key, ARGV[i]))
  if place and place.heir == id then redis.call('HDEL', key, place.id) end
end
return 'done'
