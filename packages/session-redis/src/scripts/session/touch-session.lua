#!lua flags=allow-oom
--[[
  touch-session: records an access to a live session, under whatever id it has now.

  KEYS[1] bucket list
  KEYS[2] events
  KEYS[3] session
  KEYS[4] shadow
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id

  Returns
    {'touched'}
    {'forwarded'}  recorded, but under a later id than the one given
    {'gone'}
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
