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
  ARGV[9..] field and `latest` of each of these, as this script replied them; id and time of the sign-in of each session
            that must have a place

  Returns
    {'unknown'}  there is no ledger
    {'room', latest}  the session may be stored until then, in epoch ms
    {'full', latest, missing, ending, others}  it may be stored until then, once there is room. `missing`: how many must end
      for it besides, which now end for others, all with 'refuse'; `ending`: the places whose sessions end for it; `others`:
      all other places whose sessions stay. Of each place its field, `latest`, 1 when its session may not be stored yet, and
      its ids
]]
if ARGV[7] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return { 'unknown' } end
-- include: ledger
local id, replaced, most, latest = ARGV[1], ARGV[2], tonumber(ARGV[3]), now + ARGV[5]
local first_session = 9 + 2 * ARGV[8]

local function take(field, at)
  return add({ field = field, at = at, latest = 0, ender = '-', ids = { field } })
end

for i = first_session, #ARGV, 2 do
  if not place_with(ARGV[i]) then store(take(ARGV[i], tonumber(ARGV[i + 1]))) end
end
sort()

-- Later than all others, also within a millisecond.
local at = math.max(now, list[1] and list[#list].at + 1 or 0)
local own = place_with(id) or replaced ~= '' and place_with(replaced)
if not own then
  own = take(id, at)
elseif not has(own, id) then
  -- It has the id that is replaced, or one that another request has given it or is giving it.
  table.insert(own.ids, id)
  if most then own.at = at end
end
-- Not that of another request within the same millisecond.
latest = math.max(latest, own.latest + 1)
own.latest = latest
remove_over(own, 9, first_session - 1)

if own.ender == own.field then own.ender = '-' end
-- Of the sessions that wait for others to end, each is stored in the place of one of these.
local ending, others, waiting, waits = {}, {}, 0, {}
for _, place in ipairs(list) do
  if place.ender ~= own.field and is_ending(place) and not waits[place.ender] then
    waits[place.ender], waiting = true, waiting + 1
  end
  if place.ender == own.field and place ~= own then
    table.insert(ending, place)
  elseif place ~= own and not is_ending(place) then
    table.insert(others, place)
  end
end
local surplus = most and math.max(#list - waiting - most, 0) or 0
if ARGV[4] == 'refuse' then
  if surplus > 0 then own.ender = own.field end
else
  while #ending > surplus do
    local last = table.remove(ending)
    last.ender = '-'
    store(last)
    table.insert(others, last)
  end
  while #ending < surplus and others[1] do
    local first = table.remove(others, 1)
    first.ender = own.field
    store(first)
    table.insert(ending, first)
  end
end
store(own)
redis.call('PEXPIRE', ledger, ARGV[6])
if #ending == 0 and (surplus == 0 or not most) then return { 'room', latest } end

local function listed(places)
  local reply = {}
  for i, place in ipairs(places) do
    reply[i] = { place.field, string.format('%.0f', place.latest), place.latest > now and 1 or 0, unpack(place.ids) }
  end
  return reply
end
return { 'full', latest, math.max(surplus - #ending, 0), listed(ending), listed(others) }
