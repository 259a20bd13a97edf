#!lua flags=allow-oom
--[[
  claim-expired: claims the sessions that have expired: each end is recorded exactly once, with an `expired` event. The
  field `ended`, which includes/ended writes, tells that this has happened.
  Looking at a shadow key makes Redis notice that it has expired. A session that is still alive moves to the bucket of
  its end.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] dead letters
  KEYS[4..] session hash and shadow key of each member, in turn
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3] most bytes of the partition's dead letters
  ARGV[4] minute of the bucket that holds the members; empty: a key event named them
  ARGV[5..] the members, expires:<id>; none: the whole bucket has been read

  Returns one word for each member; without members {'corrupt'} when the bucket's key has a foreign type, else nothing
    'claimed'  this call has recorded the end of the session; also when only the member was left of it
    'alive'    the session has not ended
    'already'  this call has nothing to do: another call has claimed the session, or the sweep of its bucket will
    'corrupt'  a key has a foreign type, or the member a foreign form: it is a dead letter now. When the foreign key is
               an index, the end of the session is recorded as well
]]
-- include: keys, clock, buckets, index
local bucket_list, events, dead = KEYS[1], KEYS[2], KEYS[3]
local minute, kept = ARGV[4], ARGV[2]
local from_bucket = minute ~= ''
if read('ZCARD', bucket_list) == nil then error(wrong_type('zset', bucket_list)) end
if read('XLEN', events) == nil then error(wrong_type('stream', events)) end
if read('XLEN', dead) == nil then error(wrong_type('stream', dead)) end

-- Which members are in the bucket; nil when its key has a foreign type. The first one is there because Redis asks for
-- one, and there may be no members.
local present = from_bucket and read('SMISMEMBER', bucket_prefix .. minute, minute, unpack(ARGV, 5))
local foreign_bucket = present == nil
-- By bucket, the members of sessions whose end is recorded. They leave together at the end: should the call fail before,
-- the next sweep finds that it has nothing else to do.
local leaving = {}
-- Lua itself would write 1.4e+12.
local at = string.format('%.0f', now)
-- The minutes that are certainly in the bucket list.
local listed = {}
local how, is_wanted = 'expired', nil
-- include: end-wanted
-- The session hashes whose data nobody wants. They go at the end, too: until then they tell that the end is recorded.
local unwanted = {}

local function leave(bucket, member)
  local members = leaving[bucket]
  if members then members[#members + 1] = member else leaving[bucket] = { member } end
end

-- Before `remove` is called, every key is read that the dead letter needs. Whether `remove` has removed the foreign thing.
local function bury(what, reason, remove)
  -- include: dead-letters
  if read('ZCARD', dead_index) == nil then error(wrong_type('zset', dead_index)) end
  for _, key in ipairs({ dead_sizes, lost_letters, unreported_letters }) do
    if read('HLEN', key) == nil then error(wrong_type('hash', key)) end
  end
  if not remove() then return false end
  add_letter({ 'member', what, 'reason', reason, 'at', at }, tonumber(ARGV[3]))
  return true
end

-- Removes a member from the bucket that it was found in. True for one call only, however many claim the same member.
local function remove_member(member, is_present)
  return is_present and redis.call('SREM', bucket_prefix .. minute, member) == 1
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

local function move_to_its_bucket(id, key, shadow, recorded, is_present)
  -- Not `now` plus the time to live: Redis 7.0 reads its clock for each, so the sum can fall into another minute.
  local ends_at = redis.call('PEXPIRETIME', shadow)
  local right = ends_at >= 0 and bucket_to_join(ends_at)
  if not from_bucket or right == minute then return end
  local bucket = bucket_of(id, recorded)
  remove_member('expires:' .. id, is_present)
  -- The session is in the bucket that it records, so this member was a stray one.
  if bucket and bucket ~= minute then return end
  if not right then
    redis.call('HDEL', key, 'bucket')
    return
  end
  redis.call('SADD', bucket_prefix .. right, 'expires:' .. id)
  if not listed[right] then redis.call('ZADD', bucket_list, right, right) end
  listed[right] = true
  redis.call('HSET', key, 'bucket', right)
end

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
    move_to_its_bucket(id, key, shadow, fields[1], is_present)
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
  if is_present then leave(minute, member) end
  if fields[2] then return 'already' end
  local word, entries, problem = 'claimed', nil, nil
  if fields[3] then entries, problem = recorded_entries(fields[3]) end
  if problem then
    -- The sweep of the bucket ends a session whose index set is a foreign key, so that one call reports that.
    if not is_present then return 'already' end
    word = bury_member(member, is_present, problem.err)
  end
  local bucket = fields[1] ~= minute and bucket_of(id, fields[1])
  if bucket then leave(bucket, member) end
  for _, entry in ipairs(entries or {}) do redis.call('ZREM', entry.set, id) end
  -- include: ended
  if not is_wanted then unwanted[#unwanted + 1] = key end
  record(id)
  return word
end

local words = {}
for i = 5, #ARGV do
  local is_present = present and present[i - 3] == 1
  -- The member has left the bucket since this call looked: another instance sweeps the same bucket.
  words[i - 4] = present and not is_present and 'already'
    or claim(ARGV[i], KEYS[2 * i - 6], KEYS[2 * i - 5], is_present)
end
if has_recorded then
  -- include: signal
end
for bucket, members in pairs(leaving) do redis.call('SREM', bucket_prefix .. bucket, unpack(members)) end
if unwanted[1] then redis.call('UNLINK', unpack(unwanted)) end
if from_bucket and not foreign_bucket then leaving[minute] = true end
for bucket in pairs(leaving) do
  if redis.call('EXISTS', bucket_prefix .. bucket) == 0 then redis.call('ZREM', bucket_list, bucket) end
end
if foreign_bucket and #ARGV == 4 then
  local remove = function() return redis.call('ZREM', bucket_list, minute) == 1 end
  if bury('expirations:' .. minute, wrong_type('set', bucket_prefix .. minute).err, remove) then return { 'corrupt' } end
end
return words
