-- include: types, words
-- The groups whose handlers want an event, by what they want. A stray key in the place of the wishes is none.
local function groups_by_wish(wanted)
  local groups, wishes = {}, read('HGETALL', wanted) or {}
  for i = 1, #wishes, 2 do
    for name in pairs(words_in(wishes[i + 1])) do
      groups[name] = groups[name] or {}
      table.insert(groups[name], wishes[i])
    end
  end
  return groups
end
