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
-- include: keys
local events, failing, retries, group = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local failed = read_typed('hash', 'HLEN', failing)
local retried = read_typed('zset', 'ZCARD', retries)
-- unpack() returns at most 8000 values at once.
for i = 2, #ARGV, 4000 do
  local last = math.min(i + 3999, #ARGV)
  -- The first write, which fails when the stream is a stray key.
  local acknowledged = read('XACK', events, group, unpack(ARGV, i, last))
  if acknowledged == nil then error(wrong_type('stream', events)) end
  if failed > 0 then redis.call('HDEL', failing, unpack(ARGV, i, last)) end
  if retried > 0 then redis.call('ZREM', retries, unpack(ARGV, i, last)) end
end
return 'acknowledged'
