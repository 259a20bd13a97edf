-- The two numbers of a position; the first is a time in epoch milliseconds.
local function parts(position)
  local ms, sequence = string.match(position or '', '^(%d+)-(%d+)$')
  return tonumber(ms or 0), tonumber(sequence or 0)
end

local function before(one, other)
  local ms, sequence = parts(one)
  local other_ms, other_sequence = parts(other)
  return ms < other_ms or (ms == other_ms and sequence < other_sequence)
end

-- '0-0' when the stream was created again since the event at the position in `key` was trimmed: positions may be lower.
local function trimmed_position(events, key)
  local trimmed = redis.call('GET', key)
  local first = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  local is_stale = first and not before(trimmed or '0-0', first[1]) or redis.call('EXISTS', events) == 0
  return not is_stale and trimmed or '0-0'
end
