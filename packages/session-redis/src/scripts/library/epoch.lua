-- The epoch that a key has, in epoch ms; 0 when every session may live.
local function epoch_at(key) return tonumber(redis.call('HGET', key, 'at')) or 0 end

-- Whether the epoch ends a session that was created and signed in to at these times, nil or false for never: before it, or
-- in its millisecond. The score in an index is the later one of both.
local function is_ended_by(epoch, created_at, signed_in_at)
  return math.max(tonumber(created_at) or 0, tonumber(signed_in_at) or 0) <= epoch
end
