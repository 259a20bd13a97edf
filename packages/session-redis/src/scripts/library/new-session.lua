-- include: session-timeouts, place, join, wanted
-- A new session. `new` has its `id`, `key` and `shadow`; `interval` and `timeout` in s, negative for none; `indexes` and
-- `set`, names and values or fields and texts in turn; `who` signs in; and `most`, after how many ms it ends until renewed.

-- Adds its times, the `place` for its end and its index `entries`. This reads each key that store_session() writes.
local function begin_session(partition, new, now)
  if new.timeout >= 0 then new.absolute_expiry = now + new.timeout * 1000 end
  new.ends_at = end_after(now, new.interval, new.absolute_expiry)
  if new.most and (not new.ends_at or now + new.most < new.ends_at) then new.ends_at = now + new.most end
  if new.ends_at then new.place = place_for(partition, new.ends_at) end
  if new.indexes[1] then
    -- include: index
    new.entries = new_entries(partition.prefix, new.indexes)
    if new.entries[1] then new.index = recorded_form(new.entries) end
  end
end

-- The fields of the session hash, with up to 4000 of the attributes: Lua passes at most 8000 values.
local function fields_of(new, now)
  local at = string.format('%.0f', now)
  local list = { 'creationTime', at, 'lastAccessedTime', at, 'maxInactiveInterval', new.interval, unpack(new.set, 1, math.min(#new.set, 4000)) }
  local n = #list
  if new.place and new.place.bucket then list[n + 1], list[n + 2], n = 'bucket', new.place.bucket, n + 2 end
  if new.absolute_expiry then list[n + 1], list[n + 2], n = 'absoluteExpiry', new.absolute_expiry, n + 2 end
  if new.who then list[n + 1], list[n + 2], n = 'authenticatedAt', at, n + 2 end
  if new.index then list[n + 1], list[n + 2] = 'index', new.index end
  return list
end

local function store_session(partition, new, grace, now)
  local is_heard, signs_in = is_wanted(partition.events, 'created'), new.who and is_wanted(partition.events, 'signed-in')
  if is_heard or signs_in then
    -- include: record
    -- The first write, which fails when the stream is a stray key.
    if is_heard then record(partition, 'created', new.id, now) end
    if signs_in then record(partition, 'signed-in', new.id, now, 'who', new.who) end
  end
  redis.call('HSET', new.key, unpack(fields_of(new, now)))
  if #new.set > 4000 then
    -- include: hash-fields
    write_fields(new.key, new.set)
  end
  if new.ends_at then
    -- As set_end() does it, with one command less.
    redis.call('SET', new.shadow, '', 'PXAT', new.ends_at)
    redis.call('PEXPIREAT', new.key, new.ends_at + grace)
    join(partition, new.id, new.place, now)
  else
    redis.call('SET', new.shadow, '')
  end
  if new.entries then
    -- include: index-score
    for _, entry in ipairs(new.entries) do redis.call('ZADD', entry.set, score_after_all(entry.set, now), new.id) end
  end
end
