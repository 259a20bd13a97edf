local is_wanted
-- paste: end-session
-- Makes room in the index of principals for the session `own`, which enters these indexes. `limit`: how many live sessions
-- may be listed, and what happens when there would be more. A session that has expired, or that the epoch ends, does not
-- count. Returns the reply when the session cannot be saved, or not yet.
local function refusal_of(entries, own, limit)
  local set, most, way = nil, string.match(limit, '^(%d+) (.+)$')
  for _, entry in ipairs(most and entries or {}) do
    if entry.name == 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME' then
      set = entry.set
    end
  end
  local size = set and redis.call('ZCARD', set) or 0
  if not set or size < tonumber(most) then return nil end
  local epoch = tonumber(redis.call('HGET', prefix .. 'epoch', 'at') or 0)
  local refuses = way == 'refuse'
  local most_others, live, looked = refuses and tonumber(most) or most - 1, 0, 0
  -- From the latest sign-in on: what comes after those that stay is too many.
  while live < most_others and looked < size do
    local page = redis.call('ZRANGE', set, looked, looked + 99, 'REV', 'WITHSCORES')
    for i = 1, #page, 2 do
      looked = looked + 1
      local counts = page[i] ~= own and tonumber(page[i + 1]) > epoch
      if counts and redis.call('EXISTS', prefix .. 'sessions:expires:' .. page[i]) == 1 then live = live + 1 end
      if live == most_others then break end
    end
  end
  if refuses then return live == most_others and 'refused' or nil end
  if looked == size then return nil end
  if read('ZCARD', bucket_list) == nil then error(wrong_type('zset', bucket_list)) end
  local left = {}
  for _, other in ipairs(redis.call('ZRANGE', set, 0, math.min(size - looked, 50) - 1)) do
    if other ~= own then
      local _, problem = end_session(other)
      if problem then error({ err = problem }) end
      table.insert(left, other)
    end
  end
  -- Also what is over and not yet claimed, so that the next call does not find it again.
  if left[1] then redis.call('ZREM', set, unpack(left)) end
  return size - looked > 50 and 'again' or nil
end
