-- The ledger of a principal: a place for each of its sessions, and for each that is about to be one. A place is the field
-- of the id with which it was taken. Its value: when it was taken, until when its session may still be stored, for whose
-- session this one is to end (the field of that place, its own when it is refused, `-` for none), and the ids that its
-- session may have.
-- include: clock
local ledger = KEYS[1]
local by_field, list = {}, {}

local function add(place)
  by_field[place.field] = place
  table.insert(list, place)
  return place
end

-- The first taken comes first.
local function sort() table.sort(list, function(a, b) return a.at < b.at end) end

local stored = redis.call('HGETALL', ledger)
for i = 1, #stored, 2 do
  local at, latest, ender, ids = string.match(stored[i + 1], '^(%d+) (%d+) (%S+) (.*)$')
  local place = { field = stored[i], at = tonumber(at), latest = tonumber(latest), ender = ender, ids = {} }
  for id in string.gmatch(ids, '%S+') do table.insert(place.ids, id) end
  add(place)
end
sort()

local function store(place)
  -- Lua itself would write 1.4e+12.
  local text = string.format('%.0f %.0f %s %s', place.at, place.latest, place.ender, table.concat(place.ids, ' '))
  redis.call('HSET', ledger, place.field, text)
end

local function has(place, id)
  for _, each in ipairs(place.ids) do
    if each == id then return true end
  end
  return false
end

-- The place that a session has.
local function place_with(id)
  for _, place in ipairs(list) do
    if has(place, id) then return place end
  end
  return nil
end

-- Whether the session of a place is about to end for another one, which can still be stored. Or is itself refused.
local function is_ending(place)
  local ender = by_field[place.ender]
  return ender ~= nil and ender.latest > now
end

local function remove(place)
  redis.call('HDEL', ledger, place.field)
  by_field[place.field] = nil
  for i, each in ipairs(list) do
    if each == place then table.remove(list, i) end
  end
end

-- Gives up places whose sessions are over: ARGV has the field of each, and its `latest` as a script replied it. Not when
-- that has changed, because another request is storing the session. Nor what ends for another session than that of `own`.
local function remove_over(own, first, last)
  for i = first, last, 2 do
    local over = by_field[ARGV[i]]
    local is_same = over and over ~= own and string.format('%.0f', over.latest) == ARGV[i + 1]
    if is_same and (not is_ending(over) or own and over.ender == own.field) then remove(over) end
  end
end
