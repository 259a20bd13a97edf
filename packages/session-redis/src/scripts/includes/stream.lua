-- The events stream, its positions and its groups.
local events = KEYS[1]

-- A table from a reply that has names and values in turn.
local function named(reply)
  local fields = {}
  for i = 1, #reply, 2 do fields[reply[i]] = reply[i + 1] end
  return fields
end

-- The two numbers of a position; the first is a time in epoch milliseconds.
local function parts(position)
  local ms, sequence = string.match(position or '', '^(%d+)-(%d+)$')
  return tonumber(ms or 0), tonumber(sequence or 0)
end

-- Whether one position comes before another.
local function before(one, other)
  local ms, sequence = parts(one)
  local other_ms, other_sequence = parts(other)
  return ms < other_ms or (ms == other_ms and sequence < other_sequence)
end

local function first_entry()
  return redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
end

-- The position of the last trimmed event. '0-0' when the stream was created again since then: its positions may be
-- lower than those of the old stream.
local function trimmed_position(key)
  local trimmed = redis.call('GET', key)
  local first = first_entry()
  local is_stale = first and not before(trimmed or '0-0', first[1]) or redis.call('EXISTS', events) == 0
  return not is_stale and trimmed or '0-0'
end

-- What XINFO replies of each group, by name.
local function groups_of_stream()
  local groups = {}
  if redis.call('EXISTS', events) == 0 then return groups end
  for _, reply in ipairs(redis.call('XINFO', 'GROUPS', events)) do
    local group = named(reply)
    groups[group.name] = group
  end
  return groups
end

-- Notes that an instance of a group is alive. Redis 7.0 resets the idle time only when it delivers entries, so an
-- instance that waits long looks dead. Reading its own pending entries counts too; there are none behind this position.
local function note_instance(group, consumer)
  redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, '18446744073709551614-0')
end
