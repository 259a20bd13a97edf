#!lua flags=allow-oom
--[[
  touch-session: renews the idle timeout of a live session. Follows forwarding marks.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys, ARGV[2] id, ARGV[3] grace in ms

  Returns
    {'touched'}
    {'forwarded'}  touched, under a later id than the given one
    {'gone'}       there is no live session
]]
-- include: live-session, clock, session-timeouts, renewal
local prefix, asked_id, grace = ARGV[1], ARGV[2], ARGV[3]

local fields, id, key, shadow = live_session(prefix, asked_id, KEYS[3], KEYS[4])
if not fields then return { 'gone' } end
local accessed, now = tonumber(fields[1]), now_in_ms()
local ends_at = end_after(now, tonumber(fields[2]), tonumber(fields[3]))
renew(prefix, KEYS[1], KEYS[2], id, key, shadow, fields[4], ends_at, now, grace)
-- A slow request must not undo a later one.
if not accessed or accessed < now then redis.call('HSET', key, 'lastAccessedTime', now) end
return { id == asked_id and 'touched' or 'forwarded' }
