#!lua
--[[
  reserve-place: takes a place in the ledger of a principal for a session that is about to be stored, and says what must
  end before: the sessions of the places that were taken first. Until the place is settled or its time has passed, nothing
  ends for another session that is to end for this one, so whoever has a place waits for nobody. Called again, it keeps the
  place and its time.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session will have
  ARGV[2] id that it has now; empty: it is new
  ARGV[3] how many sessions the principal may have; empty: the session is one of them, and only changes its id
  ARGV[4] 'end-oldest' or 'refuse': what happens when there would be more
  ARGV[5] for how many ms from now the session may be stored
  ARGV[6] how long the ledger is kept, in ms
  ARGV[7] 1: the ledger may be made
  ARGV[8] a ledger that was made before may lack sessions, in epoch ms; 0: none does
  ARGV[9] number of places whose sessions are over. They are given up
  ARGV[10..] id and time of each of these, as this script replied them; id and time of the sign-in of each session that must
            have a place

  Returns
    {'unknown'}  there is no ledger, or none that has all sessions
    {'busy'}     no place was taken: other requests are about to store as many sessions as there may be, or this very one
    {'refused', others}  no place was taken
    {'room', latest, known, ending, others}  the session may be stored until then, in epoch ms, once the sessions of `ending`
      have ended. `known`: 1 when the ledger had this id before
    `others`: places whose sessions stay, if some must end or the session is refused. Less has to end when one of these is
    over. Of each place its id and its time, in turn
]]
-- include: arguments, clock, ledger
local key, id, replaced, most, refuses = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == 'refuse'
local duration, kept_for, may_make, since, first_session = ARGV[5], ARGV[6], ARGV[7] == '1', tonumber(ARGV[8]), 10 + 2 * ARGV[9]
local over, sessions = part_of(ARGV, 10, first_session - 1), part_of(ARGV, first_session, #ARGV)

-- For how many ms a request that finds it busy keeps its turn; what no sign-in takes longer than; and the field, like no
-- id, that says since when the ledger has all sessions.
local WAITING, LONGEST_STORING, MADE_AT = 250, 3600000, '@'
local function is_known()
  return redis.call('EXISTS', key) == 1 and tonumber(redis.call('HGET', key, MADE_AT) or 0) >= since
end
if not may_make and not is_known() then return { 'unknown' } end
local now, places, stored = now_in_ms(), {}, redis.call('HGETALL', key)
for i = 1, #stored, 2 do places[stored[i]] = place_in(stored[i], stored[i + 1]) end

-- Not one from a time when the clock was ahead: whether its session is there decides.
local function is_open(place) return place ~= nil and place.latest > now and place.latest <= now + LONGEST_STORING end

-- Whether another session takes the place.
local function is_taken(place) return place.heir ~= id and is_open(places[place.heir]) end

local function add_sessions()
  if may_make and since > 0 then redis.call('HSET', key, MADE_AT, digits(math.max(now, since))) end
  for i = 1, #sessions, 2 do
    if not places[sessions[i]] then
      local place = { id = sessions[i], at = tonumber(sessions[i + 1]), latest = 0, heir = '-', before = '-' }
      places[place.id] = place
      store_place(key, place)
    end
  end
end

-- Not when another request has asked for the place since then.
local function remove_over()
  for i = 1, #over, 2 do
    local place = places[over[i]]
    if place and digits(place.at) == over[i + 1] and not is_open(place) and not is_taken(place) then
      redis.call('HDEL', key, place.id)
      places[place.id] = nil
    end
  end
end

-- The places that may end for this session, the first one first (`pool`); how many others are about to be stored (`open`),
-- and have waited for longer (`earlier`). `is_held`: another request is about to store or to end this session.
-- `is_crowded`: several places end for one of the others, which stands for all of them until they have ended.
local function look_at(own, before, turn)
  local seen, takes = { pool = {}, open = 0, earlier = 0, newest = 0 }, {}
  seen.is_held = own and is_taken(own) or before and is_taken(before)
  for _, place in pairs(places) do
    seen.newest = math.max(seen.newest, place.at)
    if place.heir == '?' then
      if not is_open(place) then redis.call('HDEL', key, place.id) end
      if is_open(place) and (not turn or place.at < turn.at) then seen.earlier = seen.earlier + 1 end
    elseif is_taken(place) then
      seen.is_crowded = seen.is_crowded or takes[place.heir]
      takes[place.heir] = true
    elseif place ~= own and place ~= before then
      if is_open(place) then seen.open = seen.open + 1 else table.insert(seen.pool, place) end
      -- A double click signs in to one session twice.
      if is_open(place) and place.before == replaced and replaced ~= '' then seen.is_held = true end
    end
  end
  table.sort(seen.pool, function(a, b) return a.at < b.at or a.at == b.at and a.id < b.id end)
  return seen
end

-- The place of the session, which is open from then on.
local function open_place(own, before, newest)
  if not own then
    -- A rotation is no sign-in. Of sign-ins within a millisecond, the later one comes last.
    local at = not most and before and before.at or math.max(now, newest + 1)
    own = { id = id, at = at, latest = 0, before = replaced ~= '' and replaced or '-' }
  elseif not is_open(own) then
    -- A caller that knows the place as it was must look again.
    own.at = own.at + 1
  end
  if not is_open(own) then own.latest = now + duration end
  own.heir = '-'
  store_place(key, own)
  return own.latest
end

local function hand_over(place, heir)
  place.heir = heir
  store_place(key, place)
end

local function listed(pool, from, to)
  local reply = {}
  for i = from, to do
    table.insert(reply, pool[i].id)
    table.insert(reply, digits(pool[i].at))
  end
  return reply
end

add_sessions()
remove_over()
redis.call('PEXPIRE', key, kept_for)
local own, before, turn = places[id], replaced ~= id and places[replaced] or nil, places['?' .. id]
local seen, known = look_at(own, before, turn), own and 1 or 0
if seen.is_held then return { 'busy' } end
local pool = seen.pool
local to_end = most and math.max(1 + #pool + seen.open - most, 0) or 0
if to_end > 0 and refuses then return { 'refused', listed(pool, 1, #pool) } end
local is_later = seen.earlier > 0 and seen.open + seen.earlier >= (most or math.huge) and not is_open(own)
if most and (seen.is_crowded or is_later or to_end > #pool) then
  store_place(key, { id = '?' .. id, at = turn and turn.at or now, latest = now + WAITING, heir = '?', before = '-' })
  return { 'busy' }
end

local latest = open_place(own, before, seen.newest)
if turn then redis.call('HDEL', key, turn.id) end
if before then hand_over(before, id) end
for i, place in ipairs(pool) do
  if i <= to_end then hand_over(place, id) elseif place.heir == id then hand_over(place, '-') end
end
redis.call('PEXPIRE', key, kept_for)
return { 'room', latest, known, listed(pool, 1, to_end), listed(pool, to_end + 1, to_end > 0 and #pool or to_end) }
