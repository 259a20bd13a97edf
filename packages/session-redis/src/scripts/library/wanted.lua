-- Whether anybody wants the events of a kind. A stray key in the place of the wishes says nothing, so the data is kept.
local function is_wanted(events, kind)
  local wishes = redis.pcall('HVALS', events .. ':wanted')
  if not wishes[1] or string.find(table.concat(wishes, ' '), kind, 1, true) then return true end
  return redis.call('EXISTS', events .. ':wanted:broadcast:' .. kind) == 1
end
