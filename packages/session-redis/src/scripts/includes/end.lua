-- Ends the live session: nothing finds it any more. `is_wanted`: whether anybody wants the event; nil when the script has
-- not asked yet. The event is the first write, which fails when the stream is a stray key.
local size, is_in_set = 0, false
if tonumber(bucket) then
  size = redis.pcall('SCARD', bucket_prefix .. bucket)
  if type(size) ~= 'number' or size == 1 then
    -- paste: buckets
    size = checked(size) or 0
    if size == 1 then is_listed(bucket) end
  end
else
  is_in_set = redis.pcall('ZSCORE', prefix .. 'ends', id)
  if type(is_in_set) == 'table' then
    -- paste: types
    is_in_set = checked(is_in_set)
  end
end
local entries
if index then
  -- paste: index
  entries = recorded_entries(index)
end
if is_wanted == nil then
  -- paste: end-wanted
end
local recorded = redis.pcall('XADD', events, '*', 'type', how, 'session', id, 'at', now)
if type(recorded) == 'table' then
  -- paste: unrecorded
end
-- paste: signal
for _, entry in ipairs(entries or {}) do redis.call('ZREM', entry.set, id) end
if size > 0 and redis.call('SREM', bucket_prefix .. bucket, 'expires:' .. id) == size then
  redis.call('ZREM', bucket_list, bucket)
end
if is_in_set then redis.call('ZREM', prefix .. 'ends', id) end
redis.call('DEL', shadow)
if is_wanted then
  -- paste: ended
else
  redis.call('UNLINK', key)
end
