-- paste: types
-- Whether it has ended a session, as deleted; not one that is over. The second result is the error of a stray key.
local function end_session(id)
  local key, shadow, how = prefix .. 'sessions:' .. id, prefix .. 'sessions:expires:' .. id, 'deleted'
  local text, fields = read('GET', shadow), read('HMGET', key, 'lastAccessedTime', 'bucket', 'index')
  -- A stray key in the place of the session hash is no session.
  if text == false or not fields then return false end
  -- Nor is a shadow key without its session hash: the sweeper reports it.
  if not fields[1] and redis.call('EXISTS', key) == 0 then return false end
  if text == nil then return false, wrong_type('string', shadow, id).err end
  local bucket, index = fields[2], fields[3]
  -- paste: end
  return true
end
