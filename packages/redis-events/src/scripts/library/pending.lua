-- The pending entries of a group.

-- The pending entry at a position as XPENDING replies it: {position, consumer, idle time, deliveries}; nil when there
-- is none. With a consumer as fourth argument, only an entry that this consumer owns.
local function pending_at(events, group, position, ...)
  return redis.call('XPENDING', events, group, position, position, 1, ...)[1]
end

-- Acknowledges an entry for a group, and forgets its failures and its retry. Returns 1 when the entry was pending.
local function settle(events, group, failing, retries, position)
  redis.call('HDEL', failing, position)
  redis.call('ZREM', retries, position)
  return redis.call('XACK', events, group, position)
end
