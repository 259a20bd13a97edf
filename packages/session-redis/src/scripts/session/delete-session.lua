#!lua flags=allow-oom
--[[
  delete-session: deletes a live session, and records its `deleted` event. Follows forwarding marks.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id

  Returns
    {'deleted'}
    {'forwarded'}  deleted, under a later id than the given one
    {'gone'}       there is no live session
]]
-- include: store, expiration, session
local session = live_session({ id = ARGV[4], key = KEYS[3], shadow = KEYS[4] })
if not session then return { 'gone' } end

local problem = wrong_type(shared_keys()) or wrong_type(keys_of(session))
if problem then return problem end
locate(session)
end_session(session, 'deleted', now_in_ms())
return { session.id == ARGV[4] and 'deleted' or 'forwarded' }
