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
-- paste: keys, live
local fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'bucket')
if not fields[1] then
  -- paste: incomplete
end
-- paste: clock
local accessed, interval, absolute_expiry = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3])
local since = now
-- paste: end-since
local bucket, is_in, due, moves = fields[4], nil, nil, nil
-- paste: check-member
if moves then
  -- paste: change-member
end
if not accessed or accessed < now then redis.call('HSET', key, 'lastAccessedTime', now) end
-- paste: set-end
return { id == ARGV[2] and 'touched' or 'forwarded' }
