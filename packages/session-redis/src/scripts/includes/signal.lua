-- Tells the instances that wait for new events of the partition. Only a hint, which each of them can do without, so an error
-- is none of this script. With one partition, which has no hash tag, the instances wait on the stream itself.
if string.find(events, '{', 1, true) then redis.pcall('SPUBLISH', events, 'events') end
