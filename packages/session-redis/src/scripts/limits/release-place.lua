#!lua flags=allow-oom
--[[
  release-place: gives up the places of sessions that have ended for another one, or the place of a session that was not
  stored. Then nothing ends for it, either.

  KEYS[1] ledger of the principal
  ARGV[1] id that the session has, or was to have
  ARGV[2] 1: the session was not stored
  ARGV[3..] field and `latest` of each place whose session is over, as reserve-place replied them

  Returns
    'done'
]]
-- include: ledger
local own = place_with(ARGV[1])
remove_over(own, 3, #ARGV)
if not own or ARGV[2] ~= '1' then return 'done' end
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
store(own)
return 'done'
