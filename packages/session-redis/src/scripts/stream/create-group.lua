#!lua flags=allow-oom
--[[
  create-group: has a group hear of events, unless it does already. It begins behind what was trimmed, so that it is not
  taken for a group that has missed that.

  KEYS[1] events
  KEYS[2] position of the last trimmed event
  ARGV[1] group
  ARGV[2] with which event it begins: 'oldest' that is kept, or 'now': with the next one

  Returns
    'created'
    'exists'
]]
-- include: server, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'string' } })
if problem then return problem end
if groups_of_stream()[ARGV[1]] then return 'exists' end

local trimmed = trimmed_position(KEYS[2])
if trimmed == '0-0' then redis.call('DEL', KEYS[2]) end
redis.call('XGROUP', 'CREATE', events, ARGV[1], ARGV[2] == 'now' and '$' or trimmed, 'MKSTREAM')
return 'created'
