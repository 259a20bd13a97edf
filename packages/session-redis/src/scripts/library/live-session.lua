-- The live session of `id`, whose session hash is at `key` and whose shadow key is at `shadow`, or the later session to
-- which its forwarding marks lead; nil when there is none. `seals`: the rules of the sign-ins on the way. `bucket` is what
-- the hash says, and is_misplaced() finds out whether it is true. The second result is the reply for the fields of the hash:
-- these four, and those that the script names.
local function live_session(prefix, id, key, shadow, ...)
  local seals = nil
  local text = redis.pcall('GET', shadow)
  if text ~= '' then
    -- include: follow-marks
    id, key, shadow, seals = follow_marks(prefix, id, key, shadow, text)
    if not id then return nil end
  end
  local fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'bucket', ...)
  if not fields[1] then
    -- include: keys
    if not checked(fields) then error(wrong_type('hash', key, id)) end
    -- A shadow key without its session hash is no session, and must not become half of one. Without the shadow key the
    -- sweeper reports the end, with the data lost.
    local is_lost = redis.call('EXISTS', key) == 0 and redis.call('DEL', shadow)
    if is_lost then return nil end
  end
  return {
    id = id, key = key, shadow = shadow, seals = seals, accessed = tonumber(fields[1]), interval = tonumber(fields[2]),
    absolute_expiry = tonumber(fields[3]), bucket = fields[4],
  }, fields
end
