-- include: digits, fields, positions, trimming
-- Which events make room for others, as their types say.

-- What the slowest group with a living instance has read; nil without such a group.
local function slowest_reader(stream, groups)
  local slowest
  for _, group in ipairs(groups) do
    local is_slower = not slowest or precedes(group.read, slowest)
    if is_slower and has_active_instance(stream, group.name) then slowest = group.read end
  end
  return slowest
end

local function scanned_position(stream, key)
  local scanned = redis.call('HGET', key, 'scanned') or '0-0'
  local last = named(redis.call('XINFO', 'STREAM', stream.events))['last-generated-id']
  -- The stream was created again, at an earlier time.
  return before(last, scanned) and '0-0' or scanned
end

-- The events behind a position that make room: their `positions`, by type the `last` one, and up to where they were
-- `scanned`. `surplus`: how many have to, whatever their age. nil when no event is left to look at.
local function room_behind(stream, scanned, slowest, surplus, types)
  local room = { positions = {}, last = {} }
  local late = age_to_make_room(stream)
  for _, entry in ipairs(redis.call('XRANGE', stream.events, '(' .. scanned, '+', 'COUNT', stream.limit)) do
    local is_late = slowest and age_of(stream, entry) >= late and precedes(slowest, pair_of(entry[1]))
    if #room.positions >= surplus and not is_late then break end
    room.scanned = entry[1]
    local kind = value_in(entry[2], 'type')
    if types[kind] then
      table.insert(room.positions, entry[1])
      room.last[kind] = entry[1]
    end
  end
  return room.scanned and room or nil
end

-- The same behind the position in the hash `key`. `oldest`: the oldest event of all.
local function find_room(stream, groups, key, oldest, surplus, types)
  local scanned = scanned_position(stream, key)
  local slowest = age_of(stream, oldest) >= age_to_make_room(stream) and slowest_reader(stream, groups)
  if surplus <= 0 then
    if not slowest then return nil end
    if precedes(pair_of(scanned), slowest) then scanned = digits(slowest[1]) .. '-' .. digits(slowest[2]) end
  end
  return room_behind(stream, scanned, slowest, surplus, types)
end
