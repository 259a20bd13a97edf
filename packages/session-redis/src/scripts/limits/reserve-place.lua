#!lua
--[[
  reserve-place: takes a place in the ledger of a principal for a session that is about to be stored, and says what must
  end before: the sessions of the places that were taken first, each of which ends for one other session only.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session will have
  ARGV[2] id that it has now; empty: it is new
  ARGV[3] how many sessions the principal may have; empty: the session is one of them, and only changes its id
  ARGV[4] 'end-oldest' or 'refuse': what happens when there would be more
  ARGV[5] for how many ms from now the session may be stored
  ARGV[6] how long the ledger is kept, in ms
  ARGV[7] 1: the next ones are all sessions of the principal, for a ledger that is not there
  ARGV[8..] id and time of the sign-in of each

  Returns
    {'unknown'}  there is no ledger
    {'room', latest}  the session may be stored until then, in epoch ms
    {'full', latest, ending, others}  it may be stored until then, once there is room. `ending`: the places whose sessions
      end for it, none with 'refuse'; `others`: all other places whose sessions stay. Of each place its field, its text
      `latest`, 1 when its session may not be stored yet, and its ids
]]
-- include: ledger
if ARGV[7] ~= '1' and redis.call('EXISTS', ledger) == 0 then return { 'unknown' } end
local id, replaced, most, latest = ARGV[1], ARGV[2], tonumber(ARGV[3]), now + ARGV[5]
local by_field, list = places_of_ledger()

local function take(field, at)
  local place = { place = field, at = at, latest = 0, ender = '-', ids = { field } }
  by_field[field] = place
  table.insert(list, place)
  return place
end

for i = 8, #ARGV, 2 do
  if not place_with(list, ARGV[i]) then store(take(ARGV[i], tonumber(ARGV[i + 1]))) end
end
table.sort(list, function(a, b) return a.at < b.at end)

-- Later than all others, also within a millisecond.
local at = math.max(now, list[1] and list[#list].at + 1 or 0)
local own = place_with(list, id) or replaced ~= '' and place_with(list, replaced) or take(id, at)
if not place_with({ own }, id) then
  -- It has the id that is replaced, or one that another request is giving it.
  own.ids = own.latest > now and own.ids or { replaced }
  table.insert(own.ids, id)
end
if most then own.at = at end
own.latest = latest

local ending, others = {}, {}
for _, each in ipairs(list) do
  if each.ender == own.place and each ~= own then
    table.insert(ending, each)
  elseif each ~= own and not is_ending(each, by_field) then
    table.insert(others, each)
  end
end
-- A session that ends for another one needs no room.
local stays = own.ender == own.place or not is_ending(own, by_field)
local surplus = most and #others + (stays and 1 or 0) - most or 0
if surplus > 0 and ARGV[4] == 'refuse' then
  own.ender = own.place
elseif own.ender == own.place then
  own.ender = '-'
end
if ARGV[4] == 'end-oldest' then
  for _ = 1, math.min(surplus, #others) do
    local first = table.remove(others, 1)
    first.ender = own.place
    store(first)
    table.insert(ending, first)
  end
end
store(own)
redis.call('PEXPIRE', ledger, ARGV[6])
if #ending == 0 and own.ender ~= own.place then return { 'room', latest } end

local function listed(places)
  local reply = {}
  for i, each in ipairs(places) do
    reply[i] = { each.place, string.format('%.0f', each.latest), each.latest > now and 1 or 0, unpack(each.ids) }
  end
  return reply
end
return { 'full', latest, listed(ending), listed(others) }
