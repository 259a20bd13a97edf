-- The ledger of a principal: a place for each of its sessions, and for each that is about to be one. A place is the field
-- of the id with which it was taken. Its value: when it was taken, until when its session may still be stored, whose
-- session this one makes room for (the field of another place, `-` for none), and the ids that its session may have.
-- include: clock
local ledger = KEYS[1]

local function parsed(place, text)
  local at, latest, ender, ids = string.match(text, '^(%d+) (%d+) (%S+) (.*)$')
  local found = { place = place, at = tonumber(at), latest = tonumber(latest), ender = ender, ids = {} }
  for id in string.gmatch(ids, '%S+') do table.insert(found.ids, id) end
  return found
end

-- All places by their fields, and as a list, the first taken first.
local function places_of_ledger()
  local texts, by_field, list = redis.call('HGETALL', ledger), {}, {}
  for i = 1, #texts, 2 do
    local found = parsed(texts[i], texts[i + 1])
    by_field[texts[i]] = found
    table.insert(list, found)
  end
  table.sort(list, function(a, b) return a.at < b.at end)
  return by_field, list
end

local function store(place)
  local ids = table.concat(place.ids, ' ')
  -- Lua itself would write 1.4e+12.
  local text = string.format('%.0f %.0f %s %s', place.at, place.latest, place.ender, ids)
  redis.call('HSET', ledger, place.place, text)
end

-- The place that a session has.
local function place_with(list, id)
  for _, each in ipairs(list) do
    for _, own in ipairs(each.ids) do
      if own == id then return each end
    end
  end
  return nil
end

-- Whether the session of a place is ending to make room for another one. Not when that one can no longer be stored.
local function is_ending(place, by_field)
  local ender = by_field[place.ender]
  return ender ~= nil and ender.latest > now
end
