-- The ledger of a principal: a place for each of its sessions, and for each that is about to be one. A place is the field
-- of the id with which it was taken. Its value: when it was taken; a number that grows whenever somebody asks for it, or
-- gives it up; for whose session this one is to end (the field of that place, its own when it is refused, `-` for none); and
-- the ids that its session may have. Before each id stands until when the session may still be stored under it, 0 when it
-- was; or `-`: the session had that id, as somebody else's, when a sign-in began to change it.
-- paste: clock
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
  local at, version, ender, ids = string.match(stored[i + 1], '^(%d+) (%d+) (%S+) (.*)$')
  local place = { field = stored[i], at = tonumber(at), version = tonumber(version), ender = ender, ids = {} }
  for latest, id in string.gmatch(ids, '(%d*)%-?:(%S+)') do
    table.insert(place.ids, { id = id, latest = tonumber(latest) })
  end
  add(place)
end
sort()

local function store(place)
  local texts = {}
  for i, each in ipairs(place.ids) do
    texts[i] = '-:' .. each.id
    -- Lua itself would write 1.4e+12.
    if each.latest then texts[i] = string.format('%.0f:%s', each.latest, each.id) end
  end
  local text = string.format('%.0f %.0f %s %s', place.at, place.version, place.ender, table.concat(texts, ' '))
  redis.call('HSET', ledger, place.field, text)
end

-- Whoever knows the place as it was must look again.
local function renew(place) place.version = math.max(now, place.version + 1) end

-- What a place knows of an id, and the number of that.
local function entry_of(place, id)
  for i, each in ipairs(place.ids) do
    if each.id == id then return each, i end
  end
  return nil
end

-- Until when the session of a place may still be stored.
local function latest_of(place)
  local latest = 0
  for _, each in ipairs(place.ids) do latest = math.max(latest, each.latest or 0) end
  return latest
end

-- The place that a session has.
local function place_with(id)
  for _, place in ipairs(list) do
    if entry_of(place, id) then return place end
  end
  return nil
end

-- Whether the session of a place is about to end for another one, which can still be stored. Or is itself refused.
local function is_ending(place)
  local ender = by_field[place.ender]
  return ender ~= nil and latest_of(ender) > now
end

local function remove(place)
  redis.call('HDEL', ledger, place.field)
  by_field[place.field] = nil
  for i, each in ipairs(list) do
    if each == place then table.remove(list, i) end
  end
end

-- Gives up places whose sessions are over: ARGV has the field of each, and its version as a script replied it. Not when
-- that has changed, because another request is storing the session. Nor what ends for another session than that of `own`.
local function remove_over(own, first, last)
  for i = first, last, 2 do
    local over = by_field[ARGV[i]]
    local is_same = over and over ~= own and string.format('%.0f', over.version) == ARGV[i + 1]
    if is_same and (not is_ending(over) or own and over.ender == own.field) then remove(over) end
  end
end
