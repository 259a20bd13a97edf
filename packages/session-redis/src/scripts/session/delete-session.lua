#!lua flags=allow-oom
--[[
  delete-session: deletes a live session, and records its `deleted` event. Follows forwarding marks.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] index that must list the session; none: any session
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] how long the session hash is kept after the end, in ms
  ARGV[4] why: a SessionDeletedReason of session-core

  Returns
    {'deleted'}
    {'forwarded'}  deleted, under a later id than the given one
    {'gone'}       there is no live session, or the index does not list it
]]
-- include: live-session, clock, end
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }
local id, retention, cause, index = ARGV[2], ARGV[3], ARGV[4], KEYS[5]

local fields, live_id, key, shadow = live_session(partition.prefix, id, KEYS[3], KEYS[4], 'index')
if not fields then return { 'gone' } end
if index and not redis.call('ZSCORE', index, live_id) then return { 'gone' } end
local session = { id = live_id, key = key, shadow = shadow, bucket = fields[4], index = fields[5] }
end_session(partition, session, { how = 'deleted', cause = cause, at = now_in_ms(), retention = retention })
return { live_id == id and 'deleted' or 'forwarded' }
