-- The live session of `id`, or the later one to which its forwarding marks lead: the fields of its hash (these four, and
-- those that the script names), its id, its two keys, and the rules of the sign-ins on the way (`seals`); or nil, and the
-- word of a mark that leads nowhere. No table, and few includes: every save and every touch pays for them.
local function live_session(prefix, id, key, shadow, ...)
  local seals, text = nil, redis.pcall('GET', shadow)
  if text ~= '' then
    -- include: forwarding-marks
    id, key, shadow, seals = follow_marks(prefix, id, key, shadow, text)
    if not id then return nil, key end
  end
  local fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'bucket', ...)
  if not fields[1] then
    -- include: keys
    if not checked(fields) then error(wrong_type('hash', key, id)) end
    -- A shadow key without its session hash is no session, and must not become half of one. Without the shadow key the
    -- sweeper reports the end, with the data lost.
    if redis.call('EXISTS', key) == 0 and redis.call('DEL', shadow) then return nil end
  end
  return fields, id, key, shadow, seals
end
