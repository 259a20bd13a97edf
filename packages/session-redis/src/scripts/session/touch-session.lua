#!lua flags=allow-oom
--[[
  touch-session: renews the idle timeout of a live session. Follows forwarding marks.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms

  Returns
    {'touched'}
    {'forwarded'}  touched, under a later id than the given one
    {'gone'}       there is no live session
]]
-- include: live-session, clock, renewal
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }
local id, grace = ARGV[2], ARGV[3]

local session = live_session(partition.prefix, id, KEYS[3], KEYS[4])
if not session then return { 'gone' } end
local now = now_in_ms()
renew(partition, session, end_after(now, session.interval, session.absolute_expiry), now, grace)
-- A slow request must not undo a later one.
if not session.accessed or session.accessed < now then redis.call('HSET', session.key, 'lastAccessedTime', now) end
return { session.id == id and 'touched' or 'forwarded' }
