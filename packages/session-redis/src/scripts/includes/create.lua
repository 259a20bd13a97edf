-- Stores the new session `id`, which lives for `most` ms at most until it is renewed, and records its `created` event
-- unless nobody wants it. ARGV has its indexes from `first_index` on, and its attributes from `first_attribute` on.
-- `signs_in`: whether somebody signs in. `limit`: of the sessions of the principal, as in includes/limit; empty: none.
-- include: clock
local interval, absolute_timeout, since = tonumber(ARGV[4]), tonumber(ARGV[5]), now
local absolute_expiry = absolute_timeout >= 0 and now + absolute_timeout * 1000 or nil
-- include: in-time, end-since
if most and (not ends_at or now + most < ends_at) then ends_at = now + most end
local bucket, is_new
if ends_at then
  -- include: buckets
  bucket = bucket_to_join(ends_at)
  is_new = not is_listed(bucket)
end
local entries
if first_attribute > first_index then
  -- include: index
  entries = new_entries(first_index, first_attribute - 1)
  if limit ~= '' then
    -- include: limit
    local refusal = refusal_of(entries, id, limit)
    if refusal then return { refusal } end
    -- It may have ended the last session in the bucket, which is then no longer listed.
    is_new = bucket ~= nil
  end
  if entries[1] then
    ARGV[last + 1], ARGV[last + 2] = 'index', recorded_form(entries)
    last = last + 2
  end
end

local wishes = redis.call('HVALS', KEYS[6])
local is_wanted = not wishes[1]
for _, wish in ipairs(wishes) do is_wanted = is_wanted or wish ~= '0' end
if is_wanted or redis.call('EXISTS', KEYS[7]) == 1 then
  -- The first write, which fails when the stream is a foreign key.
  local recorded = redis.pcall('XADD', events, '*', 'type', 'created', 'session', id, 'at', now)
  if type(recorded) == 'table' then
    -- include: unrecorded
  end
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
-- include: write-fields
if ends_at then
  redis.call('SET', shadow, '', 'PXAT', ends_at)
  redis.call('PEXPIREAT', key, ends_at + ARGV[3])
  redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. id)
  if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end
else
  redis.call('SET', shadow, '')
end
for _, entry in ipairs(entries or {}) do redis.call('ZADD', entry.set, now, id) end
