-- include: keys, spring-bucket
-- Where Spring notes when a session ends: in the bucket of a minute, or in a sorted set where its application keeps
-- one. How long we know at least what Spring does not, in ms.
local DAY = 86400000

local function sorted_set_of(place) return place.prefix .. 'sessions:expirations' end

-- Removes a session from there. `ends_at`: when it would end; nil: never.
local function leave_place(place, id, ends_at)
  if ends_at then read('SREM', spring_bucket(place.prefix, ends_at), '"expires:' .. id .. '"') end
  read('ZREM', sorted_set_of(place), '"' .. id .. '"')
  read('ZREM', place.own .. 'ends', id)
end

-- Notes there, and in our own list, that a session ends in `left` ms, and sets its times to live.
local function take_place(place, session, ends_at, left)
  if redis.call('TYPE', sorted_set_of(place)).ok == 'zset' then
    redis.call('ZADD', sorted_set_of(place), ends_at, '"' .. session.id .. '"')
  else
    local bucket = spring_bucket(place.prefix, ends_at)
    -- A stray key in its place is not ours to mend. We find the end without it.
    if read('SADD', bucket, '"expires:' .. session.id .. '"') then redis.call('PEXPIRE', bucket, left + SPRING_GRACE) end
  end
  redis.call('ZADD', place.own .. 'ends', ends_at, session.id)
  redis.call('SET', session.shadow, '', 'PX', left)
  redis.call('PEXPIRE', session.key, left + SPRING_GRACE)
  redis.call('PEXPIRE', place.own .. 'sessions:signed-in:' .. session.id, left + DAY)
end
