#!lua flags=allow-oom
--[[
  claim-expired: claims the sessions that have expired: each end is recorded exactly once, with an `expired` event.
  Looking at a shadow key makes Redis notice that it has expired. A session that is still alive moves to the bucket of
  its end.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] dead letters
  KEYS[4..] session hash and shadow key of each member, in turn
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] about how many dead letters of the partition to keep
  ARGV[5] minute of the bucket that holds the members; empty: a key event named them
  ARGV[6..] the members, expires:<id>; none: the whole bucket has been read

  Returns one word for each member; without members {'corrupt'} when the bucket's key has a foreign type, else nothing
    'claimed'  this call has recorded the end of the session; also when only the member was left of it
    'alive'    the session has not ended
    'already'  this call has nothing to do: another call has claimed the session, or the sweep of its bucket will
    'corrupt'  a key has a foreign type, or the member a foreign form: it is a dead letter now. When the foreign key is
               an index, the end of the session is recorded as well
]]
-- include: store, expiration, session
local minute = ARGV[5]
local from_bucket = minute ~= ''
local foreign_bucket = from_bucket and wrong_type({ { bucket_key(minute), 'set' } })
local now = now_in_ms()

-- Removes a member from the bucket that it was found in. True for one call only, however many claim the same member.
local function remove_member(member)
  return from_bucket and not foreign_bucket and redis.call('SREM', bucket_key(minute), member) == 1
end

local function add_dead_letter(what, reason)
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'member', what, 'reason', reason, 'at', integer(now))
end

local function bury_member(member, reason)
  if not remove_member(member) then return 'already' end
  add_dead_letter(member, reason)
  return 'corrupt'
end

local function move_to_its_bucket(session, member)
  -- Not `now` plus the time to live: Redis 7.0 reads its clock for each, so the sum can fall into another minute.
  local ends_at = redis.call('PEXPIRETIME', session.shadow)
  local right = ends_at >= 0 and bucket_to_join(ends_at)
  if not from_bucket or right == minute then return 'alive' end
  locate(session)
  remove_member(member)
  -- The session is in the bucket that it records, so this member was a stray one.
  if session.bucket and session.bucket ~= minute then return 'alive' end
  if right then join_bucket(session, right) else redis.call('HDEL', session.key, 'bucket') end
  return 'alive'
end

local function claim(session, member)
  if session.id == nil then return bury_member(member, 'not a member of this form: expires:<id>') end
  local problem = wrong_type(keys_of(session))
  if problem then return bury_member(member, problem.err) end
  local has_data = redis.call('EXISTS', session.key) == 1
  if redis.call('EXISTS', session.shadow) == 1 then
    if has_data then return move_to_its_bucket(session, member) end
    redis.call('DEL', session.shadow)
  end
  if not has_data then
    -- Only the member tells that there was a session, so the call that removes the member reports the end. Another call
    -- may have claimed the session already, or changed its id.
    if not remove_member(member) then return 'already' end
    record('expired', session.id, now, 'dataLost', 1)
    return 'claimed'
  end
  local word = 'already'
  if redis.call('HEXISTS', session.key, 'ended') == 0 then
    locate(session)
    word = session.foreign and bury_member(member, session.foreign.err) or 'claimed'
    if word ~= 'already' then end_session(session, 'expired', now) end
  end
  remove_member(member)
  return word
end

local problem = wrong_type(shared_keys()) or wrong_type({ { KEYS[3], 'stream' } })
if problem then return problem end
local members = { unpack(ARGV, 6) }
local peeked = from_bucket and not foreign_bucket and #members > 0
local present = peeked and redis.call('SMISMEMBER', bucket_key(minute), unpack(members))
local words = {}
for i, member in ipairs(members) do
  local session = { id = id_of_member(member), key = KEYS[2 + 2 * i], shadow = KEYS[3 + 2 * i] }
  -- The member has left the bucket since this call looked: another instance sweeps the same bucket.
  words[i] = present and present[i] == 0 and 'already' or claim(session, member)
end
if from_bucket and not foreign_bucket then
  forget_empty_bucket(minute)
elseif foreign_bucket and #members == 0 and redis.call('ZREM', bucket_list, minute) == 1 then
  add_dead_letter('expirations:' .. minute, foreign_bucket.err)
  return { 'corrupt' }
end
return words
