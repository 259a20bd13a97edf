#!lua flags=allow-oom
--[[
  acknowledge-events: acknowledges entries whose handlers have all succeeded, and forgets their failures.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  ARGV[1] group
  ARGV[2..] positions

  Returns
    'acknowledged'
]]
-- paste: types
local events = KEYS[1]
local failing, retries = read('HLEN', KEYS[2]), read('ZCARD', KEYS[3])
if not failing then error(wrong_type('hash', KEYS[2])) end
if not retries then error(wrong_type('zset', KEYS[3])) end
-- The first write, which fails when the stream is a stray key.
local recorded = redis.pcall('XACK', events, ARGV[1], unpack(ARGV, 2))
-- paste: unrecorded
if failing > 0 then redis.call('HDEL', KEYS[2], unpack(ARGV, 2)) end
if retries > 0 then redis.call('ZREM', KEYS[3], unpack(ARGV, 2)) end
return 'acknowledged'
