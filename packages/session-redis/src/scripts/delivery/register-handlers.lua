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
-- include: groups, types, words
local events, handlers, wanted = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, liveness, names, types = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
assert_types({ { events, 'stream' }, { handlers, 'hash' }, { wanted, 'hash' } })

note_instance(events, group, consumer)
local others = redis.call('HGET', handlers, group)
redis.call('HSET', handlers, group, names)
local differs = false
if others and others ~= names then
  for _, instance in ipairs(instances_of(events, group)) do
    differs = differs or instance.name ~= consumer and instance.idle < liveness
  end
end
-- A living instance with other handlers may want what this one does not.
for known in string.gmatch(differs and redis.call('HGET', wanted, group) or '', '%S+') do
  types = with_word(types, known)
end
redis.call('HSET', wanted, group, types)
if differs then return { 'differing', others } end
return { 'registered' }
