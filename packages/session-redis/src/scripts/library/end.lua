-- include: record, wanted, keep-ended
-- Ends a live session: nothing finds it any more. `ending`: `how`, as 'deleted' or 'expired'; the `cause` of a deletion;
-- the time `at`; the `retention` of the data in ms; and whether the event `is_wanted`. The event is the first write.
local function end_session(partition, session, ending)
  local prefix, id, entries, size, score = partition.prefix, session.id, {}, 0, nil
  if ending.is_wanted == nil then ending.is_wanted = is_wanted(partition.events, ending.how) end
  local bucket = prefix .. 'expirations:' .. (session.bucket or '')
  if tonumber(session.bucket) then size = redis.pcall('SCARD', bucket) else score = redis.pcall('ZSCORE', prefix .. 'ends', id) end
  if size == 1 or type(size) == 'table' or type(score) == 'table' then
    -- include: keys
    -- A stray key in the place of either has no member. With its last member, the minute leaves the bucket list.
    size, score = checked(size) or 0, checked(score)
    if size == 1 then read_typed('zset', 'ZCARD', partition.bucket_list) end
  end
  if session.index then
    -- include: index
    entries = recorded_entries(prefix, session.index)
  end
  record(partition, ending.how, id, ending.at, 'cause', ending.cause or '')
  for _, entry in ipairs(entries) do redis.call('ZREM', entry.set, id) end
  if size > 0 and redis.call('SREM', bucket, 'expires:' .. id) == size then redis.call('ZREM', partition.bucket_list, session.bucket) end
  if score then redis.call('ZREM', prefix .. 'ends', id) end
  redis.call('DEL', session.shadow)
  keep_ended(session.key, ending)
end
