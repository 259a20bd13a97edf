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

local function is_older(position, age)
  return parts(position) <= now - age
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
  return before(read, trimmed) and is_older(read, retention) and not has_active_instance(name)
end

-- The groups, each with its first event that is pending.
local groups = groups_of_stream()
local waits = false
for name, group in pairs(groups) do
  group.read = group['last-delivered-id']
  local pending = redis.call('XPENDING', events, name, entries[1][1], '+', 1)[1]
  group.unfinished = pending and pending[1]
  group.is_waited_for = not is_given_up(name, group.read)
  waits = waits or group.is_waited_for
  group.failing, group.retries = events .. ':failing:' .. name, events .. ':retries:' .. name
  group.problem = wrong_type({ { group.failing, 'hash' }, { group.retries, 'zset' } })
end

local function is_handled(position)
  for _, group in pairs(groups) do
    local has_finished = not before(group.read, position)
      and not (group.unfinished and not before(position, group.unfinished))
    if group.is_waited_for and not has_finished then return false end
  end
  -- Without a group, keep the event: a group may still be created.
  return waits
end

local function may_go(i, position)
  return i <= surplus or is_older(position, retention) or (is_older(position, grace) and is_handled(position))
end

local removed, last = 0, nil
for i, entry in ipairs(entries) do
  if not may_go(i, entry[1]) then break end
  removed, last = i, entry[1]
end
if removed == 0 then return { 'done', 0, {} } end

-- Acknowledges the removed events for a group, and counts those that the group has not handled.
local function drop_unhandled(name, group)
  local dropped = 0
  for i = 1, removed do
    if before(group.read, entries[i][1]) then dropped = dropped + 1 end
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

local function remove_data(event)
  local key = prefix .. 'sessions:' .. (event.session or '')
  local is_end = event.type == 'deleted' or event.type == 'expired'
  if is_end and not wrong_type({ { key, 'hash' } }) and redis.call('HEXISTS', key, 'ended') == 1 then
    redis.call('UNLINK', key)
  end
end

local dropped = {}
for name, group in pairs(groups) do
  local count = drop_unhandled(name, group)
  if count > 0 then
    redis.call('HINCRBY', KEYS[3], name, count)
    table.insert(dropped, name)
    table.insert(dropped, count)
  end
end
for i = 1, removed do remove_data(named(entries[i][2])) end
local ms, sequence = parts(last)
redis.call('XTRIM', events, 'MINID', integer(ms) .. '-' .. integer(sequence + 1))
redis.call('SET', KEYS[2], last)
if removed == limit then return { 'more', removed, dropped } end
return { 'done', removed, dropped }
