-- Stores the session of includes/new-session under `id`, and records its `created` event unless nobody wants it. ARGV has
-- its attributes from `first_attribute` on. `signs_in`: whether somebody signs in.
if index_field then
  ARGV[last + 1], ARGV[last + 2] = 'index', index_field
  last = last + 2
end

local wishes = redis.call('HVALS', KEYS[6])
local is_wanted = not wishes[1]
for _, wish in ipairs(wishes) do is_wanted = is_wanted or string.find(wish, 'created', 1, true) end
if is_wanted or redis.call('EXISTS', KEYS[7]) == 1 then
  -- The first write, which fails when the stream is a stray key.
  local recorded = redis.pcall('XADD', events, '*', 'type', 'created', 'session', id, 'at', now)
  if type(recorded) == 'table' then
    -- paste: unrecorded
  end
  -- paste: signal
end
ARGV[last + 1], ARGV[last + 2] = 'creationTime', now
ARGV[last + 3], ARGV[last + 4] = 'lastAccessedTime', now
ARGV[last + 5], ARGV[last + 6] = 'maxInactiveInterval', ARGV[4]
last = last + 6
if signs_in then
  ARGV[last + 1], ARGV[last + 2] = 'authenticatedAt', now
  last = last + 2
end
if absolute_expiry then
  ARGV[last + 1], ARGV[last + 2] = 'absoluteExpiry', absolute_expiry
  last = last + 2
end
if bucket then
  ARGV[last + 1], ARGV[last + 2] = 'bucket', bucket
  last = last + 2
end
-- paste: write-fields
if ends_at then
  redis.call('SET', shadow, '', 'PXAT', ends_at)
  redis.call('PEXPIREAT', key, ends_at + ARGV[3])
  -- paste: join
else
  redis.call('SET', shadow, '')
end
for _, entry in ipairs(entries or {}) do redis.call('ZADD', entry.set, now, id) end
