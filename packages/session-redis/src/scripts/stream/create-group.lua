#!lua flags=allow-oom
--[[
  create-group: creates a group unless it exists. It begins after the last trimmed event, so that it does not look like
  a group that has missed events.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] which events each group wants
  ARGV[1] group
  ARGV[2] its first event: 'oldest' for the oldest that is kept, 'now' for the next one

  Returns
    'created'
    'exists'
]]
-- paste: server, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'string' }, { KEYS[3], 'hash' } })
if problem then return problem end
if groups_of_stream()[ARGV[1]] then return 'exists' end

local trimmed = trimmed_position(KEYS[2])
if trimmed == '0-0' then redis.call('DEL', KEYS[2]) end
redis.call('XGROUP', 'CREATE', events, ARGV[1], ARGV[2] == 'now' and '$' or trimmed, 'MKSTREAM')
-- Until its instances tell what they want.
redis.call('HSET', KEYS[3], ARGV[1], 'created deleted expired id-changed')
return 'created'
