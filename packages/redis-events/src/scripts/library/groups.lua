-- include: fields

-- In every group, this consumer owns the entries that wait for a retry; it is no instance. The group's retries say when
-- each of them is due, so its idle time means nothing.
local RETRIES_CONSUMER = 'retries'

local function groups_of(events)
  local groups = {}
  if redis.call('EXISTS', events) == 0 then return groups end
  for _, reply in ipairs(redis.call('XINFO', 'GROUPS', events)) do
    local group = named(reply)
    groups[group.name] = group
  end
  return groups
end

local function instances_of(events, group)
  local instances = {}
  for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, group)) do
    local consumer = named(reply)
    if consumer.name ~= RETRIES_CONSUMER then table.insert(instances, consumer) end
  end
  return instances
end

-- Notes that an instance of a group is alive. Redis 7.0 resets the idle time only when it delivers entries, so an
-- instance that waits long looks dead. Reading its own pending entries counts too; there are none behind this position.
local function note_instance(events, group, consumer)
  redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, '18446744073709551614-0')
end
