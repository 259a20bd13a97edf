#!lua flags=allow-oom
--[[
  register-handlers: records the handlers of an instance that joins its group, and which events they want.

  KEYS[1] events stream
  KEYS[2] handlers of all groups
  KEYS[3] which events each group wants
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] idle time in ms below which an instance is alive
  ARGV[4] names of its handlers, as JSON
  ARGV[5] types of the events that they want, separated by spaces

  Returns
    {'registered'}
    {'differing', names}  other handlers were registered before, as JSON, and another instance of the group is alive
]]
-- paste: pending, stream
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'hash' } })
if problem then return problem end
note_instance(ARGV[1], ARGV[2])
local names = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
local differs = false
if names and names ~= ARGV[4] then
  for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, ARGV[1])) do
    local consumer = named(reply)
    local is_other = consumer.name ~= retries_consumer and consumer.name ~= ARGV[2]
    differs = differs or is_other and consumer.idle < tonumber(ARGV[3])
  end
end
-- A living instance with other handlers may want what this one does not.
local types = ARGV[5]
for known in string.gmatch(differs and redis.call('HGET', KEYS[3], ARGV[1]) or '', '%S+') do
  if not string.find(types, known, 1, true) then types = (types == '' and '' or types .. ' ') .. known end
end
redis.call('HSET', KEYS[3], ARGV[1], types)
if differs then return { 'differing', names } end
return { 'registered' }
