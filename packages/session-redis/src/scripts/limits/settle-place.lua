#!lua flags=allow-oom
--[[
  settle-place: gives up the places of sessions that are over. Of those that stayed, each makes room for one more session,
  so that one of those that had to end for it stays instead.

  KEYS[1] ledger of the principal
  ARGV[1] id of the session that needs room; empty: none does
  ARGV[2..] field of each place whose session is over, and its text `latest` as reserve-place replied it. Not given up when
            that has changed: another request is storing the session

  Returns the fields of the places whose sessions must still end. Its own: the session is refused, and its place given up
]]
-- include: ledger
local by_field, list = places_of_ledger()
local own = place_with(list, ARGV[1])
local freed = 0
for i = 2, #ARGV, 2 do
  local over = by_field[ARGV[i]]
  if over and over ~= own and string.format('%.0f', over.latest) == ARGV[i + 1] then
    local stayed = not is_ending(over, by_field)
    if stayed or own and over.ender == own.place then
      redis.call('HDEL', ledger, over.place)
      over.ender = 'over'
      if stayed then freed = freed + 1 end
    end
  end
end
local left = {}
for i = own and #list or 0, 1, -1 do
  local each = list[i]
  if each.ender == own.place and freed > 0 then
    freed = freed - 1
    each.ender = '-'
    store(each)
  elseif each.ender == own.place then
    table.insert(left, each.place)
  end
end
if own and own.ender == own.place then redis.call('HDEL', ledger, own.place) end
return left
