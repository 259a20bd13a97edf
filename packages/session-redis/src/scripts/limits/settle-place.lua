#!lua flags=allow-oom
--[[
  settle-place: ends what reserve-place has begun. Of a session that was stored, the place may not be used for another id:
  when the session is over, so is its place. Of one that was not, the place is given up, and nothing ends for it; or it is
  that of the session as it was.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session has, or was to have
  ARGV[2] `latest` of its place as reserve-place replied it
  ARGV[3] 1: the session was stored
  ARGV[4..] field and `latest` of each place whose session has ended for this one

  Returns
    'done'
]]
-- include: ledger
local own = place_with(ARGV[1])
remove_over(own, 4, #ARGV)
if not own then return 'done' end
-- Not when another request is giving it another id.
local is_last = string.format('%.0f', own.latest) == ARGV[2]
if ARGV[3] == '1' then
  if is_last then
    own.latest, own.ids = 0, { ARGV[1] }
    store(own)
  end
  return 'done'
end
for _, place in ipairs(list) do
  if place.ender == own.field then
    place.ender = '-'
    store(place)
  end
end
-- A session that has another id stays.
if #own.ids == 1 then
  remove(own)
  return 'done'
end
for i, id in ipairs(own.ids) do
  if id == ARGV[1] then table.remove(own.ids, i) end
end
if is_last then own.latest = 0 end
store(own)
return 'done'
