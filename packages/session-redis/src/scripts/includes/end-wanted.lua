-- Whether anybody wants the event of an end: `is_wanted`. If not, the session's data goes at once. A save has no key of the
-- wishes, because each argument of a save costs time. A stray key in their place says nothing, so the data is kept.
local wishes = redis.pcall('HVALS', events .. ':wanted')
is_wanted = not wishes[1]
for _, wish in ipairs(wishes) do is_wanted = is_wanted or string.find(wish, how, 1, true) end
is_wanted = is_wanted or redis.call('EXISTS', events .. ':wanted:broadcast:' .. how) == 1
