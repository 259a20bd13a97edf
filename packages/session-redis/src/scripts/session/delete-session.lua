#!lua flags=allow-oom
--[[
  delete-session: ends a live session, under whatever id it has now, and records its deleted event.

  KEYS[1] bucket list
  KEYS[2] events
  KEYS[3] session
  KEYS[4] shadow
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id

  Returns
    {'deleted'}
    {'forwarded'}  ended, but under a later id than the one given
    {'gone'}
]]
-- include: store, expiration, session
local session = live_session({ id = ARGV[4], key = KEYS[3], shadow = KEYS[4] })
if not session then return { 'gone' } end

local problem = wrong_type(shared_keys()) or wrong_type(keys_of(session))
if problem then return problem end
locate(session)
end_session(session, 'deleted', now_in_ms())
return { session.id == ARGV[4] and 'deleted' or 'forwarded' }
