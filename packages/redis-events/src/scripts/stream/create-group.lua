#!lua flags=allow-oom
--[[
  create-group: creates a group unless it exists. It begins after the last trimmed event, so that it does not look like
  a group that has missed events.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] which events each group wants
  ARGV[1] group
  ARGV[2] its first event: 'oldest' for the oldest that is kept, 'now' for the next one
  ARGV[3] all types of events, separated by spaces

  Returns
    'created'
    'exists'
]]
-- include: groups, positions, types, words
local events, trimmed_key, wanted = KEYS[1], KEYS[2], KEYS[3]
local group, begins, types = ARGV[1], ARGV[2], ARGV[3]
assert_types({ { events, 'stream' }, { trimmed_key, 'string' }, { wanted, 'hash' } })
if groups_of(events)[group] then return 'exists' end

local trimmed = trimmed_position(events, trimmed_key)
if trimmed == '0-0' then redis.call('DEL', trimmed_key) end
redis.call('XGROUP', 'CREATE', events, group, begins == 'now' and '$' or trimmed, 'MKSTREAM')
-- Until its instances tell what they want; one may have told some of it already.
for known in string.gmatch(redis.call('HGET', wanted, group) or '', '%S+') do types = with_word(types, known) end
redis.call('HSET', wanted, group, types)
return 'created'
