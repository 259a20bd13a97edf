#!lua flags=allow-oom
--[[
  trim-events: removes the oldest events: those that all groups have handled and that are older than the grace period,
  and those beyond the retention or the maximum length. With the event of an end, it removes the session hash.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] counts of dropped events by group
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] at most how many events to keep
  ARGV[5] at most how many events to remove

  Returns
    {'done', removed, dropped}  nothing is left to remove now; `removed` is a count, `dropped` has group and count in
                                turn: events that were removed before the group had handled them
    {'more', removed, dropped}  the limit was reached
]]
-- include: keys, pending, stream
local grace, retention = tonumber(ARGV[2]), tonumber(ARGV[3])
local most, limit = tonumber(ARGV[4]), tonumber(ARGV[5])

local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'string' }, { KEYS[3], 'hash' } })
if problem then return problem end
local entries = redis.call('XRANGE', events, '-', '+', 'COUNT', limit)
if #entries == 0 then return { 'done', 0, {} } end

local now = now_in_ms()
local surplus = redis.call('XLEN', events) - most
local trimmed = trimmed_position(KEYS[2])

-- A position as {milliseconds, sequence}.
local function position_of(entry)
  return { parts(entry[1]) }
end

local function comes_before(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end

local function has_active_instance(name)
  for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', events, name)) do
    local consumer = named(reply)
    if consumer.name ~= retries_consumer and consumer.idle < retention then return true end
  end
  return false
end

-- A group without a living instance, whose unread events were trimmed, may never come back: nothing waits for it.
local function is_given_up(name, read)
  return before(read, trimmed) and parts(read) <= now - retention and not has_active_instance(name)
end

-- The groups, each with the position that it has read and that of its first pending event.
local groups = groups_of_stream()
local waits = false
for name, group in pairs(groups) do
  local read = group['last-delivered-id']
  local pending = redis.call('XPENDING', events, name, entries[1][1], '+', 1)[1]
  group.read = { parts(read) }
  group.unfinished = pending and { parts(pending[1]) }
  group.is_waited_for = not is_given_up(name, read)
  waits = waits or group.is_waited_for
  group.failing, group.retries = events .. ':failing:' .. name, events .. ':retries:' .. name
  group.problem = wrong_type({ { group.failing, 'hash' }, { group.retries, 'zset' } })
end

local function is_handled(position)
  for _, group in pairs(groups) do
    local has_finished = not comes_before(group.read, position)
      and not (group.unfinished and not comes_before(position, group.unfinished))
    if group.is_waited_for and not has_finished then return false end
  end
  -- Without a group, keep the event: a group may still be created.
  return waits
end

local function may_go(i)
  local position = position_of(entries[i])
  local age = now - position[1]
  return i <= surplus or age >= retention or (age >= grace and is_handled(position))
end

-- All entries before one that may go may go as well.
local removed, rest = 0, #entries + 1
while rest - removed > 1 do
  local middle = math.floor((removed + rest) / 2)
  if may_go(middle) then removed = middle else rest = middle end
end
if removed == 0 then return { 'done', 0, {} } end
local last = entries[removed][1]

-- Acknowledges the removed events for a group, and counts those that the group has not handled.
local function drop_unhandled(name, group)
  local dropped = 0
  while dropped < removed and comes_before(group.read, position_of(entries[removed - dropped])) do
    dropped = dropped + 1
  end
  repeat
    local pending = redis.call('XPENDING', events, name, '-', last, limit)
    for _, each in ipairs(pending) do
      -- A foreign key in the place of the group's records must not prevent trimming.
      if group.problem then redis.call('XACK', events, name, each[1])
      else finish(events, name, group.failing, group.retries, each[1]) end
      -- Older entries belong to events that somebody else has removed.
      if not before(each[1], entries[1][1]) then dropped = dropped + 1 end
    end
  until #pending < limit
  return dropped
end

-- The session hash that goes with an event: that of a session whose end it tells. A foreign key is none.
local function data_of(fields)
  local is_end, key = false, nil
  for i = 1, #fields, 2 do
    if fields[i] == 'type' then is_end = fields[i + 1] == 'deleted' or fields[i + 1] == 'expired'
    elseif fields[i] == 'session' then key = prefix .. 'sessions:' .. fields[i + 1] end
  end
  if not is_end or not key then return nil end
  local has_ended = redis.pcall('HEXISTS', key, 'ended')
  if type(has_ended) == 'table' then
    -- include: types
    checked(has_ended)
  end
  return has_ended == 1 and key or nil
end

local data = {}
for i = 1, removed do data[#data + 1] = data_of(entries[i][2]) end

local dropped = {}
for name, group in pairs(groups) do
  local count = drop_unhandled(name, group)
  if count > 0 then
    redis.call('HINCRBY', KEYS[3], name, count)
    table.insert(dropped, name)
    table.insert(dropped, count)
  end
end
if data[1] then redis.call('UNLINK', unpack(data)) end
local ms, sequence = parts(last)
redis.call('XTRIM', events, 'MINID', integer(ms) .. '-' .. integer(sequence + 1))
redis.call('SET', KEYS[2], last)
if removed == limit then return { 'more', removed, dropped } end
return { 'done', removed, dropped }
