-- Writes the end into the session hash: `ending.how` it ended. Its data is kept for `ending.retention` ms for the handlers of
-- the event, and trim-events removes it when all groups have handled that and the grace period is over. Spring Session never
-- looks at the shadow key: for it, an interval of 0 is the end. The fields `bucket` and `index` stay, and mean nothing.
local function mark_ended(key, ending)
  redis.call('HSET', key, 'ended', '"' .. ending.how .. '"', 'maxInactiveInterval', '0')
  redis.call('PEXPIRE', key, ending.retention)
end
