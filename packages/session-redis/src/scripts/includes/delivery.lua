-- include: server
-- What a group of the events stream has not finished.

-- The consumer, in every group, that owns what waits for its next attempt: none of the instances. When that is due is
-- in the group's retries; how long it has been idle says nothing.
local waiting = 'retries'

-- The pending entry at a position as XPENDING has it: {position, consumer, idle, times delivered}; nil when there is
-- none. With a consumer, only one of its own.
local function pending_at(events, group, position, ...)
  return redis.call('XPENDING', events, group, position, position, 1, ...)[1]
end

-- A group has nothing more to do with an entry.
local function finish(events, group, failing, retries, position)
  redis.call('XACK', events, group, position)
  redis.call('HDEL', failing, position)
  redis.call('ZREM', retries, position)
end
