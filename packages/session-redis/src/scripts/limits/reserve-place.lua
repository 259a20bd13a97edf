#!lua
--[[
  reserve-place: takes a place in the ledger of a principal for a session that is about to be stored, and says what must
  end before: the sessions of the places that were taken first, each of which ends for one other session only. Called
  again, it keeps the place.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session will have
  ARGV[2] id that it has now; empty: it is new
  ARGV[3] how many sessions the principal may have; empty: the session is one of them, and only changes its id
  ARGV[4] 'end-oldest' or 'refuse': what happens when there would be more
  ARGV[5] for how many ms from now the session may be stored
  ARGV[6] how long the ledger is kept, in ms
  ARGV[7] 1: the ledger may be made
  ARGV[8] number of places whose sessions are over. They are given up
  ARGV[9..] field and version of each of these, as this script replied them; id and time of the sign-in of each session
            that must have a place

  Returns
    {'unknown'}  there is no ledger
    {'room', latest, known}  the session may be stored until then, in epoch ms. `known`: 1 when the ledger had this id
    {'full', latest, known, missing, ending, others}  it may be stored until then, once there is room. `ending`: the places whose
      sessions end for it, none with 'refuse'; `missing`: how many more places must become free, which other sign-ins may
      bring about; `others`: places whose sessions stay. Of each place its field, version, 1 when its session may not be
      stored yet, 1 when other sessions are to end for its session, and its ids
]]
if ARGV[7] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return { 'unknown' } end
-- paste: ledger
local id, replaced, most, latest = ARGV[1], ARGV[2], tonumber(ARGV[3]), now + ARGV[5]
local first_session = 9 + 2 * ARGV[8]

-- Not in the place of a session that was rotated since then: whoever still knows it by this id will find it gone.
local function take(field, at)
  return by_field[field] or add({ field = field, at = at, version = now, ender = '-', ids = { { id = field, latest = 0 } } })
end

for i = first_session, #ARGV, 2 do
  if not place_with(ARGV[i]) then store(take(ARGV[i], tonumber(ARGV[i + 1]))) end
end
sort()

-- Later than all others, also within a millisecond.
local at = math.max(now, list[1] and list[#list].at + 1 or 0)
local own = place_with(id) or replaced ~= '' and place_with(replaced)
local is_taken = not own
if is_taken then
  own = take(id, at)
  -- Another request may sign in to the session while it has that id.
  if replaced ~= '' and replaced ~= id then table.insert(own.ids, { id = replaced }) end
elseif most and not entry_of(own, id) then
  -- It has the id that is replaced, or one that another request has given it or is giving it.
  own.at = at
end
local entry = entry_of(own, id)
local was_known = entry and entry.latest and not is_taken and 1 or 0
if not entry then
  entry = { id = id }
  table.insert(own.ids, entry)
end
-- Whoever this place is to end for may have found its session over by now.
if most and latest_of(own) <= now then own.ender = '-' end
-- Not that of another request within the same millisecond.
latest = math.max(latest, latest_of(own) + 1)
entry.latest = latest
renew(own)
remove_over(own, 9, first_session - 1)

if own.ender == own.field then own.ender = '-' end
-- Another sign-in that is under way is stored in the room of those that end for it: `waiting` is the number of such
-- sign-ins. It may find that it does not need all of them. So this one ends no others instead of the `extra` ones, but
-- waits for it; only for an earlier one, so that no two wait for each other.
local pool, waiting, extra, waits = {}, 0, 0, {}
for _, place in ipairs(list) do
  local ender = is_ending(place) and by_field[place.ender]
  if place ~= own and (not ender or ender == own) then
    table.insert(pool, place)
  elseif ender and ender ~= own then
    if not waits[ender] then
      waits[ender], waiting = true, waiting + 1
    elseif ender.at < own.at then
      extra = extra + 1
    end
  end
end
local surplus = most and math.max(#list - waiting - most, 0) or 0
local to_end = ARGV[4] == 'refuse' and 0 or surplus - extra
if ARGV[4] == 'refuse' and surplus > 0 then own.ender = own.field end
local ending, others = {}, {}
for i, place in ipairs(pool) do
  local ender = '-'
  if i <= to_end then ender = own.field end
  if place.ender ~= ender then
    place.ender = ender
    store(place)
  end
  table.insert(i <= to_end and ending or others, place)
end
store(own)
redis.call('PEXPIRE', ledger, ARGV[6])
if #ending == 0 and surplus == 0 then return { 'room', latest, was_known } end

local function listed(places)
  local reply = {}
  for i, place in ipairs(places) do
    local is_open, makes_room = latest_of(place) > now and 1 or 0, waits[place] and 1 or 0
    reply[i] = { place.field, string.format('%.0f', place.version), is_open, makes_room }
    for _, each in ipairs(place.ids) do table.insert(reply[i], each.id) end
  end
  return reply
end
return { 'full', latest, was_known, surplus - #ending, listed(ending), listed(others) }
