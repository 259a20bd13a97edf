-- The ledger of a principal: a place for each id under which a session of the principal may be live. Its value: when the
-- place was taken; until when the session may still be stored under the id, 0 once it was; the id for whose session this
-- one is to end, or to which it changes its id, `-` for none; and the id that the session has until it is stored, `-`
-- for a new one.
-- include: digits
local function place_in(id, text)
  local at, latest, heir, before = string.match(text or '', '^(%d+) (%d+) (%S+) (%S+)$')
  return at and { id = id, at = tonumber(at), latest = tonumber(latest), heir = heir, before = before }
end

local function store_place(key, place)
  local text = string.format('%s %s %s %s', digits(place.at), digits(place.latest), place.heir, place.before)
  redis.call('HSET', key, place.id, text)
end
