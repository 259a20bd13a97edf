-- include: keys, bury, signal, place, join, digits, wanted, keep-ended, index, session-timeouts
-- Claims of sessions that have expired. `claims` is the state of a script: where the members were found, in the bucket of
-- the `minute`, in the sorted set (`is_set`), or nowhere, because a key event named them; `dead`, the dead letters, which
-- may have `most_bytes`. What is `leaving` by bucket, `leaving_set` and `unwanted` leaves together at the end: should the
-- call fail before, the session hashes tell the next one that the ends are recorded.
local function begin_claims(partition, place, now, retention, dead, most_bytes)
  read_typed('zset', 'ZCARD', partition.bucket_list)
  read_typed('stream', 'XLEN', partition.events)
  read_typed('stream', 'XLEN', dead)
  return {
    partition = partition, minute = place.minute, is_set = place.is_set, now = now, at = digits(now),
    ending = { how = 'expired', retention = retention, is_wanted = is_wanted(partition.events, 'expired') },
    dead = dead, most_bytes = tonumber(most_bytes),
    leaving = {}, leaving_set = {}, unwanted = {}, has_recorded = false,
  }
end

local function leave(claims, bucket, member)
  local members = claims.leaving[bucket] or {}
  table.insert(members, member)
  claims.leaving[bucket] = members
end

-- Removes a member from where it was found. True for one call only, however many claim the same member.
local function remove_member(claims, member, is_present)
  local prefix = claims.partition.prefix
  if not is_present then return false end
  if claims.is_set then return redis.call('ZREM', prefix .. 'ends', string.sub(member, 9)) == 1 end
  return redis.call('SREM', prefix .. 'expirations:' .. claims.minute, member) == 1
end

local function bury_member(claims, member, is_present, reason)
  local is_buried = bury(claims, member, reason, function() return remove_member(claims, member, is_present) end)
  return is_buried and 'corrupt' or 'already'
end

local function record_claim(claims, id, ...)
  claims.has_recorded = true
  redis.call('XADD', claims.partition.events, '*', 'type', 'expired', 'session', id, 'at', claims.at, ...)
end

-- The recorded bucket of a session that is really in it.
local function bucket_of(claims, id, recorded)
  local bucket = claims.partition.prefix .. 'expirations:' .. (recorded or '')
  local is_in = tonumber(recorded) and read('SISMEMBER', bucket, 'expires:' .. id) == 1
  return is_in and recorded or nil
end

-- Whether a session without a bucket is in the sorted set.
local function is_in_set(claims, id, recorded)
  return not tonumber(recorded) and read('ZSCORE', claims.partition.prefix .. 'ends', id)
end

-- Whether the member of a live session is a stray one: the session stands where it is recorded to be.
local function is_stray(claims, id, recorded)
  if claims.is_set then return bucket_of(claims, id, recorded) end
  return is_in_set(claims, id, recorded) or (bucket_of(claims, id, recorded) or claims.minute) ~= claims.minute
end

-- Moves the member of a live session to where its end belongs.
local function move_member(claims, session, is_present)
  if not (claims.minute or claims.is_set) then return end
  -- Not `now` plus the time to live: Redis 7.0 reads its clock for each, so the sum can fall into another minute.
  local ends_at, place = redis.call('PEXPIRETIME', session.shadow), {}
  if ends_at >= 0 then place = place_for(claims.partition, ends_at) end
  if place.bucket and place.bucket == claims.minute then return end
  local strays = is_stray(claims, session.id, session.bucket)
  local stays = claims.is_set and not strays and ends_at >= 0 and not place.bucket
  if not stays then remove_member(claims, 'expires:' .. session.id, is_present) end
  if strays then return end
  if ends_at >= 0 then join(claims.partition, session.id, place, claims.now) end
  if place.bucket then
    redis.call('HSET', session.key, 'bucket', place.bucket)
  elseif session.bucket then
    redis.call('HDEL', session.key, 'bucket')
  end
end

-- How many ms after its end a session is claimed; nil when its data do not tell.
local function delay_of(claims, last_access, interval, absolute_expiry)
  if not (tonumber(last_access) and tonumber(interval)) then return nil end
  local ends_at = end_after(tonumber(last_access), tonumber(interval), tonumber(absolute_expiry or nil))
  return ends_at and math.max(0, claims.now - ends_at)
end

local function claim_end(claims, session, is_present)
  local member, outcome, entries, problem = 'expires:' .. session.id, session.delay or 'claimed', {}, nil
  if session.index then entries, problem = recorded_entries(claims.partition.prefix, session.index) end
  if problem then
    -- The sweep of the member ends a session whose index set is a stray key, so that one call reports that.
    if not is_present then return 'already' end
    outcome = bury_member(claims, member, is_present, problem.err)
  end
  local bucket = session.bucket ~= claims.minute and bucket_of(claims, session.id, session.bucket)
  if bucket then leave(claims, bucket, member) end
  if not claims.is_set and is_in_set(claims, session.id, session.bucket) then
    table.insert(claims.leaving_set, session.id)
  end
  for _, entry in ipairs(entries) do redis.call('ZREM', entry.set, session.id) end
  keep_ended(session.key, claims.ending, claims.unwanted)
  record_claim(claims, session.id)
  return outcome
end

-- Claims the session of a member. Returns the outcome, as claim-expired does.
local function claim(claims, member, key, shadow, is_present)
  local id = string.sub(member, 9)
  if id == '' or string.sub(member, 1, 8) ~= 'expires:' then
    return bury_member(claims, member, is_present, 'not a member of this form: expires:<id>')
  end
  local fields = read('HMGET', key, 'bucket', 'ended', 'index', 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry')
  local text = read('GET', shadow)
  if not fields then return bury_member(claims, member, is_present, wrong_type('hash', key, id).err) end
  if text == nil then return bury_member(claims, member, is_present, wrong_type('string', shadow, id).err) end
  local session = { id = id, key = key, shadow = shadow, bucket = fields[1], index = fields[3] }
  local has_data = fields[1] or fields[2] or redis.call('EXISTS', key) == 1
  if text and has_data then
    move_member(claims, session, is_present)
    return 'alive'
  end
  if not has_data then
    if text then redis.call('DEL', shadow) end
    -- Only the member tells that there was a session, so the call that removes it reports the end.
    if not remove_member(claims, member, is_present) then return 'already' end
    record_claim(claims, id, 'dataLost', 1)
    return 'claimed'
  end
  if is_present and claims.is_set then
    table.insert(claims.leaving_set, id)
  elseif is_present then
    leave(claims, claims.minute, member)
  end
  if fields[2] then return 'already' end
  session.delay = delay_of(claims, unpack(fields, 4))
  return claim_end(claims, session, is_present)
end

local function finish_claims(claims)
  local partition, buckets = claims.partition, claims.partition.prefix .. 'expirations:'
  if claims.has_recorded then signal(partition.events, 'events') end
  for bucket, members in pairs(claims.leaving) do redis.call('SREM', buckets .. bucket, unpack(members)) end
  if claims.leaving_set[1] then redis.call('ZREM', partition.prefix .. 'ends', unpack(claims.leaving_set)) end
  if claims.unwanted[1] then redis.call('UNLINK', unpack(claims.unwanted)) end
  if claims.minute then claims.leaving[claims.minute] = true end
  for bucket in pairs(claims.leaving) do
    if redis.call('EXISTS', buckets .. bucket) == 0 then redis.call('ZREM', partition.bucket_list, bucket) end
  end
end
