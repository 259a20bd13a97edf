-- include: keys, end
-- Ends the session with an id. Returns whether there was a live one; and the error of a stray key.
local function end_by_id(partition, id, ending)
  local key, shadow = partition.prefix .. 'sessions:' .. id, partition.prefix .. 'sessions:expires:' .. id
  local text, fields = read('GET', shadow), read('HMGET', key, 'lastAccessedTime', 'bucket', 'index')
  -- A stray key in the place of the session hash is no session. Nor is a shadow key without its session hash: the
  -- sweeper reports it.
  if text == false or not fields or not fields[1] and redis.call('EXISTS', key) == 0 then return false end
  if text == nil then return false, wrong_type('string', shadow, id).err end
  end_session(partition, { id = id, key = key, shadow = shadow, bucket = fields[2], index = fields[3] }, ending)
  return true
end
