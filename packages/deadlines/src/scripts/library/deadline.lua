-- include: digits, keys, signal-end
-- A deadline waits as long as its hash has a time, `due`. When it fires, only `fired` is left of it for a while.

-- The times of a waiting deadline: `due`, nil when none waits; and whether one has fired. Raises an error for a stray
-- key.
local function waiting_at(hash, member)
  local fields = read('HMGET', hash, 'due', 'fired')
  if not fields then error(wrong_type('hash', hash, member)) end
  return tonumber(fields[1] or nil), fields[2] and true
end

-- The time, in ms, that a call asks for: so long from now, or at an instant.
local function time_of(kind, ms, now)
  return tonumber(ms) + (kind == 'in' and now or 0)
end

-- Notes when a deadline of a name is due. `names` has the earliest time of each name; it may be too early, never too
-- late.
local function note_due(due, names, name, member, time)
  redis.call('ZADD', due, digits(time), member)
  redis.call('ZADD', names, 'LT', digits(time), name)
end

-- Tells the instances of a time. Returns the ms until then.
local function tell_due(events, time, now)
  local wait = math.max(0, time - now)
  signal_end(events, wait)
  return wait
end
