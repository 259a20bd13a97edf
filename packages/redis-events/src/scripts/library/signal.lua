-- Tells the instances that wait for news of a partition. Only a hint, which each of them can do without, so an error
-- does not matter. With one partition, which has no hash tag of its own, the instances wait on the events stream itself.
local function signal(events, message)
  if string.find(events, '}:events', 1, true) then redis.pcall('SPUBLISH', events, message) end
end
