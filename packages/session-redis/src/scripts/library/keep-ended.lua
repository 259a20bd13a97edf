-- Writes the end into the session hash. Its data is kept for `ending.retention` ms for the handlers of the event, and
-- goes together with that: see library/event-data. Where nobody wants the event, the hash goes at once, or, when a caller
-- lists the `unwanted` ones, with them.
local function keep_ended(key, ending, unwanted)
  if not ending.is_wanted and not unwanted then return redis.call('UNLINK', key) end
  redis.call('HSET', key, 'ended', ending.how)
  redis.call('PEXPIRE', key, ending.retention)
  if not ending.is_wanted then table.insert(unwanted, key) end
end
