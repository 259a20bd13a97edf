#!lua flags=allow-oom
--[[
  trim-events: removes the oldest events: those that all groups have handled and that are older than the grace period,
  and those beyond the retention or the maximum length. It removes the data that only such an event needs.
  Events of some types make room for others, wherever they stand: beyond the maximum length they go first, the oldest
  first. Those that a group has not read go one grace period before their retention ends, so that the group gets to the
  others behind them.

  KEYS[1] events stream
  KEYS[2] position of the last trimmed event
  KEYS[3] counts of dropped events by group
  KEYS[4] which events have made room: `scanned`, the position up to which they have; by type, that of the last one. And
          of events from a time when the clock was ahead: `ahead`, the position of the last one, and `since`, in epoch ms,
          when they were first seen
  ARGV[1] grace in ms
  ARGV[2] retention in ms
  ARGV[3] at most how many events to keep
  ARGV[4] at most how many events to remove
  ARGV[5] types of the events that make room, separated by spaces
  ARGV[6] what the keys of hashes with data begin with; missing: entries refer to none
  ARGV[7] field of an event with the rest of that key
  ARGV[8] field that a hash has when only its event needs it
  ARGV[9] types of the events with which such a hash goes, separated by spaces

  Returns
    {'done', removed, dropped}  nothing is left to remove now; `removed` is a count, `dropped` has group and count in
                                turn: events that were removed before the group had handled them
    {'more', removed, dropped}  call again: there may be more to remove
]]
-- include: clock, digits, event-data, trimming, words
local events, trimmed_key, dropped_key, thinned = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local grace, retention, most, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local makes_room = words_in(ARGV[5])
local data = { prefix = ARGV[6], id_field = ARGV[7], end_field = ARGV[8], events = words_in(ARGV[9] or '') }
assert_types({ { events, 'stream' }, { trimmed_key, 'string' }, { dropped_key, 'hash' }, { thinned, 'hash' } })

local entries = redis.call('XRANGE', events, '-', '+', 'COUNT', limit)
if #entries == 0 then return { 'done', 0, {} } end
local stream = { events = events, now = now_in_ms(), grace = grace, retention = retention, limit = limit }
stream.trimmed = trimmed_position(events, trimmed_key)
stream.ahead = note_ahead(stream, thinned, entries)
local groups = groups_to_trim(stream, entries[1][1])
local surplus = redis.call('XLEN', events) - most

local function thin(room)
  local dropped = count_dropped(groups, dropped_key, function(group)
    local count = 0
    for _, position in ipairs(room.positions) do
      local is_unread = precedes(group.read, pair_of(position))
      if is_unread or abandon(stream, group, position) then count = count + 1 end
    end
    return count
  end)
  redis.call('HSET', thinned, 'scanned', room.scanned)
  if room.positions[1] then redis.call('XDEL', events, unpack(room.positions)) end
  for kind, position in pairs(room.last) do redis.call('HSET', thinned, kind, position) end
  return { 'more', #room.positions, dropped }
end

-- Acknowledges the oldest events for a group, up to the one at `last`. How many of them it has not handled.
local function drop_unhandled(group, removed, last)
  local dropped = 0
  while dropped < removed and precedes(group.read, pair_of(entries[removed - dropped][1])) do
    dropped = dropped + 1
  end
  repeat
    local pending = redis.call('XPENDING', events, group.name, '-', last, limit)
    for _, each in ipairs(pending) do
      abandon(stream, group, each[1])
      -- Older entries belong to events that somebody else has removed.
      if not before(each[1], entries[1][1]) then dropped = dropped + 1 end
    end
  until #pending < limit
  return dropped
end

local function trim(removed)
  local last, hashes = entries[removed][1], {}
  for i = 1, removed do hashes[#hashes + 1] = data_of(data, entries[i][2]) end
  local dropped = count_dropped(groups, dropped_key, function(group) return drop_unhandled(group, removed, last) end)
  if hashes[1] then redis.call('UNLINK', unpack(hashes)) end
  local ms, sequence = parts(last)
  redis.call('XTRIM', events, 'MINID', digits(ms) .. '-' .. digits(sequence + 1))
  redis.call('SET', trimmed_key, last)
  local scanned = redis.call('HGET', thinned, 'scanned')
  local ahead = stream.ahead
  if scanned and not before(last, scanned) then redis.call('DEL', thinned) end
  if ahead and before(last, ahead.position) then
    redis.call('HSET', thinned, 'ahead', ahead.position, 'since', ahead.since)
  elseif ahead then
    redis.call('HDEL', thinned, 'ahead', 'since')
  end
  return dropped
end

local removed = count_removable(stream, groups, entries)
if removed == 0 then
  -- include: thinning
  local room = find_room(stream, groups, thinned, entries[1], surplus, makes_room)
  if room then return thin(room) end
  removed = math.max(0, math.min(surplus, #entries))
end
if removed == 0 then return { 'done', 0, {} } end
local dropped = trim(removed)
local rest = entries[removed + 1]
local is_rest_late = rest and age_of(stream, rest) >= age_to_make_room(stream)
if removed == limit or surplus > removed or is_rest_late then return { 'more', removed, dropped } end
return { 'done', removed, dropped }
