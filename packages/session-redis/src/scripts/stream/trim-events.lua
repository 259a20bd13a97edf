#!lua flags=allow-oom
--[[
  trim-events: removes the oldest events: those that all groups have handled and that are older than the grace period,
  and those beyond the retention or the maximum length. With the event of an end, it removes the session hash.
  Creations and changes of id make room for ends, wherever they stand: beyond the maximum length they go first, the oldest
  first. Those that a group has not read go one grace period before their retention ends, so that the group gets to the
  ends behind them.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] counts of dropped events by group
  KEYS[4] which events have made room: `scanned`, the position up to which they have; `created` and `id-changed`, that
          of the last one of the type
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] at most how many events to keep
  ARGV[5] at most how many events to remove

  Returns
    {'done', removed, dropped}  nothing is left to remove now; `removed` is a count, `dropped` has group and count in
                                turn: events that were removed before the group had handled them
    {'more', removed, dropped}  call again: there may be more to remove
]]
-- paste: keys, pending, stream
local grace, retention = tonumber(ARGV[2]), tonumber(ARGV[3])
local most, limit = tonumber(ARGV[4]), tonumber(ARGV[5])

local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'string' }, { KEYS[3], 'hash' }, { KEYS[4], 'hash' } })
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

local function age_of(entry)
  return now - parts(entry[1])
end

local function may_go(i)
  local age = age_of(entries[i])
  return age >= retention or (age >= grace and is_handled(position_of(entries[i])))
end

-- All entries before one that may go may go as well.
local removed, rest = 0, #entries + 1
while rest - removed > 1 do
  local middle = math.floor((removed + rest) / 2)
  if may_go(middle) then removed = middle else rest = middle end
end

-- What anybody can cause as often as he likes.
local makes_room = { created = true, ['id-changed'] = true }

-- Such an event of this age makes room, unless every group with a living instance has read it.
local late = math.max(grace, retention - grace)

-- The position that the slowest group with a living instance has read; nil without such a group.
local function slowest_reader()
  local slowest
  for name, group in pairs(groups) do
    local is_slower = not slowest or comes_before(group.read, slowest)
    if is_slower and has_active_instance(name) then slowest = group.read end
  end
  return slowest
end

local function field_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return nil
end

-- The events that make room now, the position up to which they do, and that of the last one of each type; nil when no
-- entry is left to look at.
local function find_room()
  local scanned = redis.call('HGET', KEYS[4], 'scanned') or '0-0'
  -- The stream was created again, at an earlier time.
  if before(named(redis.call('XINFO', 'STREAM', events))['last-generated-id'], scanned) then scanned = '0-0' end
  local slowest = age_of(entries[1]) >= late and slowest_reader()
  if surplus <= 0 then
    if not slowest then return nil end
    if comes_before({ parts(scanned) }, slowest) then scanned = integer(slowest[1]) .. '-' .. integer(slowest[2]) end
  end
  local found, last, looked_at = {}, {}, false
  for _, entry in ipairs(redis.call('XRANGE', events, '(' .. scanned, '+', 'COUNT', limit)) do
    local is_late = slowest and age_of(entry) >= late and comes_before(slowest, position_of(entry))
    if #found >= surplus and not is_late then break end
    scanned, looked_at = entry[1], true
    local kind = field_of(entry[2], 'type')
    if makes_room[kind] then
      table.insert(found, entry[1])
      last[kind] = entry[1]
    end
  end
  return looked_at and found or nil, scanned, last
end

local function count_dropped(drop)
  local dropped = {}
  for name, group in pairs(groups) do
    local count = drop(name, group)
    if count > 0 then
      redis.call('HINCRBY', KEYS[3], name, count)
      table.insert(dropped, name)
      table.insert(dropped, count)
    end
  end
  return dropped
end

-- Forgets an entry that a group was handling or retrying. Whether it was.
local function abandon(name, group, position)
  -- A stray key in the place of the group's records must not prevent trimming.
  if group.problem then return redis.call('XACK', events, name, position) == 1 end
  return finish(events, name, group.failing, group.retries, position) == 1
end

if removed == 0 then
  local found, scanned, last = find_room()
  if found then
    local dropped = count_dropped(function(name, group)
      local count = 0
      for _, position in ipairs(found) do
        local is_unread = comes_before(group.read, { parts(position) })
        if is_unread or abandon(name, group, position) then count = count + 1 end
      end
      return count
    end)
    redis.call('HSET', KEYS[4], 'scanned', scanned)
    if found[1] then redis.call('XDEL', events, unpack(found)) end
    for kind, position in pairs(last) do redis.call('HSET', KEYS[4], kind, position) end
    return { 'more', #found, dropped }
  end
  removed = math.max(0, math.min(surplus, #entries))
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
      abandon(name, group, each[1])
      -- Older entries belong to events that somebody else has removed.
      if not before(each[1], entries[1][1]) then dropped = dropped + 1 end
    end
  until #pending < limit
  return dropped
end

-- The session hash that goes with an event: that of a session whose end it tells. A stray key is none.
local function data_of(fields)
  local kind, id = field_of(fields, 'type'), field_of(fields, 'session')
  if not id or (kind ~= 'deleted' and kind ~= 'expired') then return nil end
  local key = prefix .. 'sessions:' .. id
  local has_ended = redis.pcall('HEXISTS', key, 'ended')
  if type(has_ended) == 'table' then
    -- paste: types
    checked(has_ended)
  end
  return has_ended == 1 and key or nil
end

local data = {}
for i = 1, removed do data[#data + 1] = data_of(entries[i][2]) end

local dropped = count_dropped(drop_unhandled)
if data[1] then redis.call('UNLINK', unpack(data)) end
local ms, sequence = parts(last)
redis.call('XTRIM', events, 'MINID', integer(ms) .. '-' .. integer(sequence + 1))
redis.call('SET', KEYS[2], last)
local scanned = redis.call('HGET', KEYS[4], 'scanned')
if scanned and not before(last, scanned) then redis.call('DEL', KEYS[4]) end
local rest = entries[removed + 1]
if removed == limit or surplus > removed or rest and age_of(rest) >= late then return { 'more', removed, dropped } end
return { 'done', removed, dropped }
