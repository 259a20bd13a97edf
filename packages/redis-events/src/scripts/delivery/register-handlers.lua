#!lua flags=allow-oom
--[[
  register-handlers: records the handlers of an instance of a group, and which events they want. The group wants what the
  handlers of any of its living instances want.

  KEYS[1] events stream
  KEYS[2] by group, the handlers of its instances
  KEYS[3] which events each group wants
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] idle time in ms below which an instance is alive
  ARGV[4] names of its handlers, as JSON
  ARGV[5] types of the events that they want, separated by spaces

  Returns
    {'registered'}
    {'differing', names}  another living instance of the group has other handlers, or they want other events: these, as JSON
]]
-- include: groups, types, words
local events, handlers, wanted = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, liveness, names, types = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
assert_types({ { events, 'stream' }, { handlers, 'hash' }, { wanted, 'hash' } })

-- What the instances of the group have recorded, by their names.
local function recorded()
  local readable, record = pcall(cjson.decode, redis.call('HGET', handlers, group) or '{}')
  return readable and type(record) == 'table' and record or {}
end

note_instance(events, group, consumer)
local known, living, others = recorded(), { [consumer] = { names = names, types = types } }, nil
for _, instance in ipairs(instances_of(events, group)) do
  local its = known[instance.name]
  if instance.name ~= consumer and instance.idle < liveness and type(its) == 'table' then
    living[instance.name] = its
    if its.names ~= names or its.types ~= ARGV[5] then others = others or its.names end
    for word in string.gmatch(its.types, '%S+') do types = with_word(types, word) end
  end
end
redis.call('HSET', handlers, group, cjson.encode(living))
redis.call('HSET', wanted, group, types)
if others then return { 'differing', others } end
return { 'registered' }
