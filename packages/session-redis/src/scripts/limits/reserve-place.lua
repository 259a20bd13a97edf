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
-- include: arguments, clock, ledger
local key, id, replaced, most, refuses = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == 'refuse'
local duration, kept_for, may_make, first_session = ARGV[5], ARGV[6], ARGV[7] == '1', 9 + 2 * ARGV[8]
local over, sessions = part_of(ARGV, 9, first_session - 1), part_of(ARGV, first_session, #ARGV)

-- Not in the place of a session that was rotated since then: whoever still knows it by this id will find it gone.
local function take(ledger, field, at)
  local place = { field = field, at = at, version = ledger.now, ender = '-', ids = { { id = field, latest = 0 } } }
  return ledger.by_field[field] or add_place(ledger, place)
end

-- Gives a place to each session that has none. A principal may have thousands, so the list is read once for all of
-- them.
local function add_sessions(ledger)
  local known = {}
  for _, place in ipairs(sessions[1] and ledger.list or {}) do
    for _, each in ipairs(place.ids) do known[each.id] = true end
  end
  for i = 1, #sessions, 2 do
    if not known[sessions[i]] then store_place(ledger, take(ledger, sessions[i], tonumber(sessions[i + 1]))) end
  end
end

-- The place of the session, whether the ledger had its id before, and until when it may be stored.
local function own_place(ledger)
  -- Later than all others, also within a millisecond.
  local at = math.max(ledger.now, ledger.list[1] and ledger.list[#ledger.list].at + 1 or 0)
  local own = place_with(ledger, id) or replaced ~= '' and place_with(ledger, replaced)
  local is_taken = not own
  if is_taken then
    own = take(ledger, id, at)
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
  -- The place for which this one is to end may have found its session over by now.
  if most and latest_of(own) <= ledger.now then own.ender = '-' end
  -- Not that of another request within the same millisecond.
  entry.latest = math.max(ledger.now + duration, latest_of(own) + 1)
  return own, was_known, entry.latest
end

-- The places that may end for the session, and how many have to. Another sign-in that is under way is stored in the
-- room of those that end for it: `waits` has such sign-ins. It may find that it does not need all of them. So this one
-- ends no others instead of the `extra` ones, but waits for it; only for an earlier one, so that no two wait for each
-- other.
local function pool_for(ledger, own)
  local pool, waiting, extra, waits = {}, 0, 0, {}
  for _, place in ipairs(ledger.list) do
    local ender = is_ending(ledger, place) and ledger.by_field[place.ender]
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
  local surplus = most and math.max(#ledger.list - waiting - most, 0) or 0
  return pool, waits, surplus, refuses and 0 or surplus - extra
end

-- Lets the first places of a pool end for the session, and no others. Returns those and the others.
local function let_end(ledger, own, pool, to_end)
  local ending, others = {}, {}
  for i, place in ipairs(pool) do
    local ender = i <= to_end and own.field or '-'
    if place.ender ~= ender then
      place.ender = ender
      store_place(ledger, place)
    end
    table.insert(i <= to_end and ending or others, place)
  end
  return ending, others
end

local function listed(ledger, places, waits)
  local reply = {}
  for i, place in ipairs(places) do
    local is_open, makes_room = latest_of(place) > ledger.now and 1 or 0, waits[place] and 1 or 0
    reply[i] = { place.field, digits(place.version), is_open, makes_room }
    for _, each in ipairs(place.ids) do table.insert(reply[i], each.id) end
  end
  return reply
end

if not may_make and redis.call('EXISTS', key) == 0 then return { 'unknown' } end
local ledger = read_ledger(key, now_in_ms())
add_sessions(ledger)
sort_places(ledger)
local own, was_known, latest = own_place(ledger)
renew_place(ledger, own)
remove_over(ledger, own, over)
if own.ender == own.field then own.ender = '-' end
local pool, waits, surplus, to_end = pool_for(ledger, own)
if refuses and surplus > 0 then own.ender = own.field end
local ending, others = let_end(ledger, own, pool, to_end)
store_place(ledger, own)
redis.call('PEXPIRE', key, kept_for)
if #ending == 0 and surplus == 0 then return { 'room', latest, was_known } end
local missing = surplus - #ending
return { 'full', latest, was_known, missing, listed(ledger, ending, waits), listed(ledger, others, waits) }
