#!lua flags=allow-oom
--[[
  touch-session: renews the idle timeout of a live session. Follows forwarding marks.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id

  Returns
    {'touched'}
    {'forwarded'}  touched, under a later id than the given one
    {'gone'}       there is no live session
]]
-- include: store, expiration, session
local session = live_session({ id = ARGV[4], key = KEYS[3], shadow = KEYS[4] })
if not session then return { 'gone' } end

local now = now_in_ms()
local problem = wrong_type(shared_keys()) or wrong_type(keys_of(session))
if problem then return problem end
locate(session)

local times = recorded_times(session)
renew(session, end_since(now, times.interval, times.absolute_expiry), now)
return { session.id == ARGV[4] and 'touched' or 'forwarded' }
