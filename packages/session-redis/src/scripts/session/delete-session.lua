#!lua flags=allow-oom
--[[
  delete-session: deletes a live session, and records its `deleted` event. Follows forwarding marks.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  KEYS[5] index that must list the session; none: any session
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none, ARGV[3] id
  ARGV[4] how long the session hash is kept after the end, in ms
  ARGV[5] why: a SessionDeletedReason of session-core

  Returns
    {'deleted'}
    {'forwarded'}  deleted, under a later id than the given one
    {'gone', word}  there is no live session, or the index does not list it. `word`: of a forwarding mark that leads nowhere
]]
-- include: live-session, clock, wanted, end
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local id, retention, cause, index = ARGV[3], ARGV[4], ARGV[5], KEYS[5]

local fields, live_id, key, shadow = live_session(partition.prefix, id, KEYS[3], KEYS[4], 'index')
if not fields then return { 'gone', live_id } end
if index and not redis.call('ZSCORE', index, live_id) then return { 'gone' } end
local session = { id = live_id, key = key, shadow = shadow, bucket = fields[4], index = fields[5] }
local ending = { how = 'deleted', cause = cause, at = now_in_ms(), retention = retention, is_wanted = is_wanted(partition.events, 'deleted') }
end_session(partition, session, ending)
return { live_id == id and 'deleted' or 'forwarded' }
