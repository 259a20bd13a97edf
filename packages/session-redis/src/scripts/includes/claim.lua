-- Claims sessions that have expired, and moves the members of those that are alive. `minute`: of the bucket in which the
-- members were found; nil: they were found elsewhere. `is_set`: they were found in the sorted set. Neither: a key event named
-- them. `kept`: how long a session hash is kept after the end, in ms. `most_bytes`: of the partition's dead letters.
-- paste: keys, clock, buckets, index
if read('ZCARD', bucket_list) == nil then error(wrong_type('zset', bucket_list)) end
if read('XLEN', events) == nil then error(wrong_type('stream', events)) end
if read('XLEN', dead) == nil then error(wrong_type('stream', dead)) end

-- By bucket, the members of sessions whose end is recorded, and those in the sorted set. They leave together at the end:
-- should the call fail before, the next one finds that it has nothing else to do.
local leaving, leaving_set = {}, {}
-- Lua itself would write 1.4e+12.
local at = string.format('%.0f', now)
local how, is_wanted = 'expired', nil
-- paste: end-wanted
-- The session hashes whose data nobody wants. They go at the end, too: until then they tell that the end is recorded.
local unwanted = {}

local function leave(bucket, member)
  local members = leaving[bucket]
  if members then members[#members + 1] = member else leaving[bucket] = { member } end
end

-- Before `remove` is called, every key is read that the dead letter needs. Whether `remove` has removed the foreign thing.
local function bury(what, reason, remove)
  -- paste: dead-letters
  if read('ZCARD', dead_index) == nil then error(wrong_type('zset', dead_index)) end
  for _, key in ipairs({ dead_sizes, lost_letters, unreported_letters }) do
    if read('HLEN', key) == nil then error(wrong_type('hash', key)) end
  end
  if not remove() then return false end
  add_letter({ 'member', what, 'reason', reason, 'at', at }, tonumber(most_bytes))
  return true
end

-- Removes a member from where it was found. True for one call only, however many claim the same member.
local function remove_member(member, is_present)
  if not is_present then return false end
  if is_set then return redis.call('ZREM', prefix .. 'ends', string.sub(member, 9)) == 1 end
  return redis.call('SREM', bucket_prefix .. minute, member) == 1
end

local function bury_member(member, is_present, reason)
  local is_buried = bury(member, reason, function() return remove_member(member, is_present) end)
  return is_buried and 'corrupt' or 'already'
end

local has_recorded = false
local function record(id, ...)
  has_recorded = true
  redis.call('XADD', events, '*', 'type', 'expired', 'session', id, 'at', at, ...)
end

-- The recorded bucket of a session that is really in it.
local function bucket_of(id, recorded)
  local is_in = tonumber(recorded) and read('SISMEMBER', bucket_prefix .. recorded, 'expires:' .. id) == 1
  return is_in and recorded or nil
end

-- Whether a session without a bucket is in the sorted set.
local function is_in_set(id, recorded)
  return not tonumber(recorded) and read('ZSCORE', prefix .. 'ends', id)
end

-- Moves the member of a live session to where its end belongs.
local function move_member(id, key, shadow, recorded, is_present)
  if not (minute or is_set) then return end
  -- Not `now` plus the time to live: Redis 7.0 reads its clock for each, so the sum can fall into another minute.
  local ends_at, bucket, is_new = redis.call('PEXPIRETIME', shadow), nil, nil
  if ends_at >= 0 then
    -- paste: place
  end
  if bucket and bucket == minute then return end
  local is_stray = minute and (is_in_set(id, recorded) or (bucket_of(id, recorded) or minute) ~= minute)
  if is_set then is_stray = bucket_of(id, recorded) end
  local stays = is_set and not is_stray and ends_at >= 0 and not bucket
  if not stays then remove_member('expires:' .. id, is_present) end
  -- The session stands where it is recorded to be, so this member was a stray one.
  if is_stray then return end
  if ends_at >= 0 then
    -- paste: join
  end
  if bucket then
    redis.call('HSET', key, 'bucket', bucket)
  elseif recorded then
    redis.call('HDEL', key, 'bucket')
  end
end

-- `member`: expires:<id>. Returns a word, as claim-expired does.
local function claim(member, key, shadow, is_present)
  local id = string.sub(member, 9)
  if id == '' or string.sub(member, 1, 8) ~= 'expires:' then
    return bury_member(member, is_present, 'not a member of this form: expires:<id>')
  end
  local fields = read('HMGET', key, 'bucket', 'ended', 'index')
  local text = read('GET', shadow)
  if not fields then return bury_member(member, is_present, wrong_type('hash', key, id).err) end
  if text == nil then return bury_member(member, is_present, wrong_type('string', shadow, id).err) end
  local has_data = fields[1] or fields[2] or redis.call('EXISTS', key) == 1
  if text and has_data then
    move_member(id, key, shadow, fields[1], is_present)
    return 'alive'
  end
  if not has_data then
    if text then redis.call('DEL', shadow) end
    -- Only the member tells that there was a session, so the call that removes the member reports the end. Another call
    -- may have claimed the session already, or changed its id.
    if not remove_member(member, is_present) then return 'already' end
    record(id, 'dataLost', 1)
    return 'claimed'
  end
  if is_present and is_set then
    leaving_set[#leaving_set + 1] = id
  elseif is_present then
    leave(minute, member)
  end
  if fields[2] then return 'already' end
  local word, entries, problem = 'claimed', nil, nil
  if fields[3] then entries, problem = recorded_entries(fields[3]) end
  if problem then
    -- The sweep of the member ends a session whose index set is a stray key, so that one call reports that.
    if not is_present then return 'already' end
    word = bury_member(member, is_present, problem.err)
  end
  local bucket = fields[1] ~= minute and bucket_of(id, fields[1])
  if bucket then leave(bucket, member) end
  if not is_set and is_in_set(id, fields[1]) then leaving_set[#leaving_set + 1] = id end
  for _, entry in ipairs(entries or {}) do redis.call('ZREM', entry.set, id) end
  -- paste: ended
  if not is_wanted then unwanted[#unwanted + 1] = key end
  record(id)
  return word
end

-- Lets everything leave that was claimed.
local function finish()
  if has_recorded then
    -- paste: signal
  end
  for bucket, members in pairs(leaving) do redis.call('SREM', bucket_prefix .. bucket, unpack(members)) end
  if leaving_set[1] then redis.call('ZREM', prefix .. 'ends', unpack(leaving_set)) end
  if unwanted[1] then redis.call('UNLINK', unpack(unwanted)) end
  if minute then leaving[minute] = true end
  for bucket in pairs(leaving) do
    if redis.call('EXISTS', bucket_prefix .. bucket) == 0 then redis.call('ZREM', bucket_list, bucket) end
  end
end
