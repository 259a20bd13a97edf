#!lua flags=allow-oom
--[[
  register-handlers: makes known which handlers an instance has that joins its group.

  KEYS[1] events
  KEYS[2] handlers of all groups
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] how long ago in ms an instance that is at work has asked for events at the most
  ARGV[4] names of its handlers, as JSON

  Returns
    {'registered'}
    {'differing', names}  what was registered before, as JSON, while another instance of the group is at work
]]
-- include: delivery, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' } })
if problem then return problem end
note_instance(ARGV[1], ARGV[2])
local names = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
if not names or names == ARGV[4] then return { 'registered' } end
for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, ARGV[1])) do
  local consumer = named(reply)
  local is_other = consumer.name ~= waiting and consumer.name ~= ARGV[2]
  if is_other and consumer.idle < tonumber(ARGV[3]) then return { 'differing', names } end
end
return { 'registered' }
