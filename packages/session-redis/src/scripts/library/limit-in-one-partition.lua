-- include: end-by-id, is-live
-- The limit of the sessions of a principal that are all in one partition: the rule of `SessionLimit` in session-core.
-- limits/limit-across-partitions.ts has it for several.

-- How many sessions of an index have to be looked at, the latest sign-in first, to find `most` live ones besides the
-- session `own`; and how many are found.
local function look_for_live(prefix, index, own, most)
  local epoch, size, live, looked = epoch_at(prefix .. 'epoch'), redis.call('ZCARD', index), 0, 0
  while live < most and looked < size do
    local page = redis.call('ZRANGE', index, looked, looked + 99, 'REV', 'WITHSCORES')
    for i = 1, #page, 2 do
      looked = looked + 1
      if page[i] ~= own and is_live(prefix, page[i], page[i + 1], epoch) then live = live + 1 end
      if live == most then break end
    end
  end
  return looked, live
end

-- Makes room in the index of a principal for the session `own`, which is about to be listed there: ends the sessions
-- that are too many, at most 50 at once. Returns the reply when there is none, or not yet; nil when there is.
local function make_room(partition, index, own, limit, ending)
  if limit.latest then return ending.at > limit.latest and { 'late' } or nil end
  local size, most_others = redis.call('ZCARD', index), limit.refuses and limit.most or limit.most - 1
  if size < limit.most then return nil end
  local looked, live = look_for_live(partition.prefix, index, own, most_others)
  if limit.refuses or looked == size then return limit.refuses and live == most_others and { 'refused' } or nil end
  read_typed('zset', 'ZCARD', partition.bucket_list)
  local left = {}
  for _, other in ipairs(redis.call('ZRANGE', index, 0, math.min(size - looked, 50) - 1)) do
    -- A call that ends all sessions of the principal reports a stray key, so it stays in the index.
    if other ~= own and not select(2, end_by_id(partition, other, ending)) then table.insert(left, other) end
  end
  -- Also what is over and not yet claimed, so that the next call does not find it again.
  if left[1] then redis.call('ZREM', index, unpack(left)) end
  return left[1] and size - looked > 50 and { 'again' } or nil
end
