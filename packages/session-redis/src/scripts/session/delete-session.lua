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

  Returns
    {'deleted'}
    {'forwarded'}  deleted, under a later id than the given one
    {'gone'}       there is no live session, or the index does not list it
]]
-- paste: keys, live
if KEYS[5] and not redis.call('ZSCORE', KEYS[5], id) then return { 'gone' } end
local fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'bucket', 'index')
if not fields[1] then
  -- paste: incomplete
end
local bucket, index, how, kept, is_wanted = fields[2], fields[3], 'deleted', ARGV[3], nil
-- paste: clock, end
return { id == ARGV[2] and 'deleted' or 'forwarded' }
