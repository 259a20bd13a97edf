-- {position, consumer, idle time, deliveries} of a pending entry, or nil. With a consumer only if that owns the entry.
local function pending_at(events, group, position, ...)
  return redis.call('XPENDING', events, group, position, position, 1, ...)[1]
end

-- Acknowledges an entry and forgets its failures and its retry. Returns 1 when it was pending.
local function settle(events, group, failing, retries, position)
  redis.call('HDEL', failing, position)
  redis.call('ZREM', retries, position)
  return redis.call('XACK', events, group, position)
end
