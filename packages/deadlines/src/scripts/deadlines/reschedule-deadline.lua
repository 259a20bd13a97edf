#!lua
--[[
  reschedule-deadline: gives a waiting deadline another time. Its id and its data stay.

  KEYS[1] sorted set of what waits of the name, KEYS[2] of the names, KEYS[3] events stream, KEYS[4] hash of the deadline
  ARGV[1] name, ARGV[2] member of the deadline in the sorted set, ARGV[3] 'in' or 'at', ARGV[4] that many ms

  Returns
    {'moved', ms}  it waits, and is due in so many ms
    {'fired'}
    {'none'}
]]
-- include: clock, deadline
local due, names, events, hash = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, member, now = ARGV[1], ARGV[2], now_in_ms()
local known, has_fired = waiting_at(hash, member)
if not known then return { has_fired and 'fired' or 'none' } end
read_typed('zset', 'ZCARD', due)
read_typed('zset', 'ZCARD', names)
local time = time_of(ARGV[3], ARGV[4], now)
redis.call('HSET', hash, 'due', digits(time))
note_due(due, names, name, member, time)
return { 'moved', tell_due(events, time, now) }
