-- The ledger of a principal: a place for each of its sessions, and for each that is about to be one. A place is the
-- field of the id with which it was taken. Its value: when it was taken; a number that grows whenever somebody asks for
-- it, or gives it up; for whose session this one is to end (the field of that place, its own when it is refused, `-`
-- for none); and the ids that its session may have. Before each id stands until when the session may still be stored
-- under it, 0 when it was; or `-`: the session had that id, as somebody else's, when a sign-in began to change it.
-- include: digits
-- No sign-in takes longer, in ms.
local LONGEST_STORING = 3600000

-- The places in the order in which they were taken.
local function sort_places(ledger)
  table.sort(ledger.list, function(a, b) return a.at < b.at end)
end

local function add_place(ledger, place)
  ledger.by_field[place.field] = place
  table.insert(ledger.list, place)
  return place
end

-- The ledger at `key` as it is `now`: its places in a `list`, the first taken first, and `by_field`.
local function read_ledger(key, now)
  local ledger = { key = key, now = now, by_field = {}, list = {} }
  local stored = redis.call('HGETALL', key)
  for i = 1, #stored, 2 do
    local at, version, ender, ids = string.match(stored[i + 1], '^(%d+) (%d+) (%S+) (.*)$')
    local place = { field = stored[i], at = tonumber(at), version = tonumber(version), ender = ender, ids = {} }
    for latest, id in string.gmatch(ids, '(%d*)%-?:(%S+)') do
      local ms = tonumber(latest)
      -- From a time when the clock was ahead: whether the session is there decides.
      if ms and ms > now + LONGEST_STORING then ms = 0 end
      table.insert(place.ids, { id = id, latest = ms })
    end
    add_place(ledger, place)
  end
  sort_places(ledger)
  return ledger
end

local function store_place(ledger, place)
  local texts = {}
  for i, each in ipairs(place.ids) do
    texts[i] = '-:' .. each.id
    if each.latest then texts[i] = digits(each.latest) .. ':' .. each.id end
  end
  local text = string.format('%.0f %.0f %s %s', place.at, place.version, place.ender, table.concat(texts, ' '))
  redis.call('HSET', ledger.key, place.field, text)
end

-- A caller that knows the place as it was must look again.
local function renew_place(ledger, place)
  place.version = math.max(ledger.now, place.version + 1)
end

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
local function place_with(ledger, id)
  for _, place in ipairs(ledger.list) do
    if entry_of(place, id) then return place end
  end
  return nil
end

-- Whether the session of a place is about to end for another one, which can still be stored. Or is itself refused.
local function is_ending(ledger, place)
  local ender = ledger.by_field[place.ender]
  return ender ~= nil and latest_of(ender) > ledger.now
end

-- It stays in the list.
local function remove_place(ledger, place)
  redis.call('HDEL', ledger.key, place.field)
  ledger.by_field[place.field] = nil
end

-- Gives up places whose sessions are over: a list of the field of each, and its version as a script replied it. Not
-- when that has changed, because another request is storing the session. Nor what ends for another session than that of
-- `own`.
local function remove_over(ledger, own, list)
  for i = 1, #list, 2 do
    local over = ledger.by_field[list[i]]
    local is_same = over and over ~= own and digits(over.version) == list[i + 1]
    if is_same and (not is_ending(ledger, over) or own and over.ender == own.field) then remove_place(ledger, over) end
  end
  -- Once for all of them: a principal may have thousands.
  local left = {}
  for _, place in ipairs(ledger.list) do
    if ledger.by_field[place.field] then table.insert(left, place) end
  end
  ledger.list = left
end
