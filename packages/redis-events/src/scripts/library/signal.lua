-- Only a hint, so an error does not matter. With one partition, which has no hash tag, instances wait on the stream.
local function signal(events, message)
  if string.find(events, '}:events', 1, true) then redis.pcall('SPUBLISH', events, message) end
end
