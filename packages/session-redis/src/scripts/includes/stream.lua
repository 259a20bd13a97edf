-- The events stream, its positions and its groups.
local events = KEYS[1]

-- A reply of names and values in turn, as a table.
local function named(reply)
  local fields = {}
  for i = 1, #reply, 2 do fields[reply[i]] = reply[i + 1] end
  return fields
end

-- A position of the stream as its two numbers; the first is the time in epoch milliseconds.
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

-- The position up to which events were trimmed. None when the stream has begun anew since then: its positions may come
-- before those of the old one.
local function trimmed_position(key)
  local trimmed = redis.call('GET', key)
  local first = first_entry()
  local is_stale = first and not before(trimmed or '0-0', first[1]) or redis.call('EXISTS', events) == 0
  return not is_stale and trimmed or '0-0'
end

-- The groups by name: what is known of each.
local function groups_of_stream()
  local groups = {}
  if redis.call('EXISTS', events) == 0 then return groups end
  for _, reply in ipairs(redis.call('XINFO', 'GROUPS', events)) do
    local group = named(reply)
    groups[group.name] = group
  end
  return groups
end

-- An instance of a group is at work. Redis 7.0 notes that only where it is given events, so that one which has waited for
-- some for long looks dead; to be shown what it has pending counts as well, behind a position where there is nothing.
local function note_instance(group, consumer)
  redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, '18446744073709551614-0')
end
