#!lua flags=allow-oom
--[[
  move-session: moves a live session to its partition in the new layout. When the epoch ends the session, so does this call,
  with a `deleted` event, in the old one.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] meta hash
  ARGV[1] prefix of the partition's keys in the old layout
  ARGV[2] the same in the new one
  ARGV[3] how long the session hash is kept after the end, in ms
  ARGV[4] what the meta hash records while the sessions move
  ARGV[5] id

  Returns
    'moved'
    'over'     the session has ended or expired
    'older'    the epoch has ended it
    'stopped'  the sessions do not move now
]]
-- include: keys, clock
local old_prefix, new_prefix = ARGV[1], ARGV[2]
-- include: move
local bucket_list, events, kept, is_wanted = KEYS[1], KEYS[2], ARGV[3], nil
if redis.call('HGET', KEYS[3], 'partitions') ~= ARGV[4] then return 'stopped' end
local has_moved, is_older = move(ARGV[5])
if not is_older then return has_moved and 'moved' or 'over' end
-- include: end-session
local _, problem = end_session(ARGV[5])
if problem then error({ err = problem }) end
return 'older'
