-- include: digits, keys, signal
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

-- Tells the instances of a time. Of several partitions, they look at each only once a minute unless they know of one
-- before. Returns the ms until then.
local function tell_due(events, time, now)
  local wait = math.max(0, time - now)
  if wait < 60000 then signal(events, 'end ' .. wait) end
  return wait
end
