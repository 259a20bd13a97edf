#!lua flags=allow-oom
--[[
  settle-place: ends what reserve-place has begun. Of a session that was stored, the place may not be used for another id:
  when the session is over, so is its place. Of one that was not, the place is given up, and nothing ends for it; or it is
  that of the session as it was.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session has, or was to have
  ARGV[2] id that it had before; empty: it is new
  ARGV[3] `latest` as reserve-place replied it
  ARGV[4] 1: the session was stored
  ARGV[5..] field and version of each place whose session has ended for this one

  Returns
    'done'
]]
-- include: arguments, clock, ledger
local id, replaced, latest, is_stored, over = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1', part_of(ARGV, 5, #ARGV)

local ledger = read_ledger(KEYS[1], now_in_ms())
local own = place_with(ledger, id)
remove_over(ledger, own, over)
if not own then return 'done' end
renew_place(ledger, own)
local function drop(dropped)
  local _, i = entry_of(own, dropped)
  if i then table.remove(own.ids, i) end
end

if is_stored then
  local entry = entry_of(own, id)
  -- Otherwise another request is storing the session under this id.
  if entry.latest and digits(entry.latest) == latest then entry.latest = 0 end
  if replaced ~= id then drop(replaced) end
  store_place(ledger, own)
  return 'done'
end
drop(id)
if latest_of(own) <= ledger.now then
  for _, place in ipairs(ledger.list) do
    if place.ender == own.field then
      place.ender = '-'
      store_place(ledger, place)
    end
  end
end
-- A session that has another id stays, and so does one that another request is storing.
for _, each in ipairs(own.ids) do
  if each.latest then
    store_place(ledger, own)
    return 'done'
  end
end
remove_place(ledger, own)
return 'done'
