-- include: fields, groups, pending, positions, types
-- Which of the oldest events may go, and what groups lose with them. `stream` has: `events`, its key; `now`, `grace`
-- and `retention`, in ms; `trimmed`, the position of the last trimmed event; `limit`, of events per call; `ahead`, what
-- note_ahead() returns.

-- A position as {milliseconds, sequence}, to be compared many times.
local function pair_of(position)
  return { parts(position) }
end

local function precedes(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end

-- Positions never go back: after the clock was ahead, they stay so, and the event itself has the time, or was recorded
-- meanwhile.
local function recorded_at(stream, entry)
  local ms = parts(entry[1])
  if ms <= stream.now then return ms end
  local at = tonumber(value_in(entry[2], 'at')) or ms
  local ahead = stream.ahead
  if at > stream.now and ahead and not before(ahead.position, entry[1]) then at = ahead.since end
  return math.min(at, stream.now)
end

local function age_of(stream, entry)
  return stream.now - recorded_at(stream, entry)
end

-- Notes in the hash `key` up to which position, and since when at the latest, there are events with times ahead of the
-- clock, when it first sees some among `entries`. Returns `position` and `since`; nil: there were none.
local function note_ahead(stream, key, entries)
  local noted = redis.call('HMGET', key, 'ahead', 'since')
  local ahead = noted[2] and tonumber(noted[2]) <= stream.now and { position = noted[1], since = tonumber(noted[2]) } or nil
  for _, entry in ipairs(parts(entries[#entries][1]) > stream.now and entries or {}) do
    local is_known = ahead and not before(ahead.position, entry[1])
    if not is_known and (tonumber(value_in(entry[2], 'at')) or math.huge) > stream.now and parts(entry[1]) > stream.now then
      local last = named(redis.call('XINFO', 'STREAM', stream.events))['last-generated-id']
      redis.call('HSET', key, 'ahead', last, 'since', stream.now)
      return { position = last, since = stream.now }
    end
  end
  return ahead
end

-- An event that can make room does at this age, unless every group with a living instance has read it.
local function age_to_make_room(stream)
  return math.max(stream.grace, stream.retention - stream.grace)
end

local function has_active_instance(stream, name)
  for _, instance in ipairs(instances_of(stream.events, name)) do
    if instance.idle < stream.retention then return true end
  end
  return false
end

-- One without a living instance that has lost events may never come back. What it has read may be ahead of the clock.
local function is_given_up(stream, name, read)
  local at = parts(read)
  return before(read, stream.trimmed) and (at <= stream.now - stream.retention or at > stream.now)
    and not has_active_instance(stream, name)
end

local function group_of(stream, name, read, from)
  local pending = redis.call('XPENDING', stream.events, name, from, '+', 1)[1]
  local failing, retries = stream.events .. ':failing:' .. name, stream.events .. ':retries:' .. name
  return {
    name = name, read = pair_of(read), unfinished = pending and pair_of(pending[1]),
    is_waited_for = not is_given_up(stream, name, read), failing = failing, retries = retries,
    -- A stray key in their place must not prevent trimming.
    has_records = not mistyped({ { failing, 'hash' }, { retries, 'zset' } }),
  }
end

local function groups_to_trim(stream, from)
  local groups = {}
  for name, info in pairs(groups_of(stream.events)) do
    table.insert(groups, group_of(stream, name, info['last-delivered-id'], from))
  end
  return groups
end

local function has_finished(group, position)
  return not precedes(group.read, position) and not (group.unfinished and not precedes(position, group.unfinished))
end

local function is_handled(groups, position)
  local waits = false
  for _, group in ipairs(groups) do
    if group.is_waited_for and not has_finished(group, position) then return false end
    waits = waits or group.is_waited_for
  end
  -- Without a group, keep the event: a group may still be created.
  return waits
end

local function may_go(stream, groups, entry)
  local age = age_of(stream, entry)
  return age >= stream.retention or (age >= stream.grace and is_handled(groups, pair_of(entry[1])))
end

-- Whether the age of the oldest event or their number allow that any go. Young events do only when they are more than
-- `most`. Those ahead of the clock are noted by the trimming itself.
local function may_have_to_trim(stream, oldest, most)
  return parts(oldest[1]) > stream.now or age_of(stream, oldest) >= math.min(stream.grace, stream.retention) or redis.call('XLEN', stream.events) > most
end

-- All before one that may go may go as well.
local function count_removable(stream, groups, entries)
  local removable, rest = 0, #entries + 1
  while rest - removable > 1 do
    local middle = math.floor((removable + rest) / 2)
    if may_go(stream, groups, entries[middle]) then removable = middle else rest = middle end
  end
  return removable
end

local function abandon(stream, group, position)
  if not group.has_records then return redis.call('XACK', stream.events, group.name, position) == 1 end
  return settle(stream.events, group.name, group.failing, group.retries, position) == 1
end

-- `drop` returns how many events a group loses. Counts them in the hash `key`; returns group and count in turn.
local function count_dropped(groups, key, drop)
  local dropped = {}
  for _, group in ipairs(groups) do
    local count = drop(group)
    if count > 0 then
      redis.call('HINCRBY', key, group.name, count)
      table.insert(dropped, group.name)
      table.insert(dropped, count)
    end
  end
  return dropped
end
