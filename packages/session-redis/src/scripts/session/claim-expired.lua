#!lua flags=allow-oom
--[[
  claim-expired: ends those of some sessions that are over, once, and records their expired events. Looking at a shadow
  makes Redis notice that its time has come. Sessions that are still alive are moved to the bucket of their real end.

  KEYS[1] bucket list
  KEYS[2] events
  KEYS[3] dead letters
  KEYS[4..] session and shadow of each member, in turn
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] how many dead letters are kept, about
  ARGV[5] minute of the bucket in which the members were found; empty: a key event named them
  ARGV[6..] the members, expires:<id>; none: nothing more is in that bucket

  Returns one word for each member; for none, 'corrupt' when it is the bucket whose key has a foreign type
    'claimed'  it is over, and this call has recorded that; also when only the member was left of it
    'alive'
    'already'  nothing is left to do for this call: another one has dealt with it, or the sweep of its bucket will
    'corrupt'  a key has a foreign type, or the member a foreign form: among the dead letters now. When the foreign key
               is an index the session's end is recorded all the same
]]
-- include: store, expiration, session
local minute = ARGV[5]
local from_bucket = minute ~= ''
local foreign_bucket = from_bucket and wrong_type({ { bucket_key(minute), 'set' } })
local now = now_in_ms()

-- Takes the member out of the bucket it was found in. True when it was still there: of several calls, only one is told.
local function take(member)
  return from_bucket and not foreign_bucket and redis.call('SREM', bucket_key(minute), member) == 1
end

local function add_dead_letter(what, reason)
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'member', what, 'reason', reason, 'at', integer(now))
end

local function set_aside(member, reason)
  if not take(member) then return 'already' end
  add_dead_letter(member, reason)
  return 'corrupt'
end

local function keep(session, member)
  -- Not the rest of its life added to `now`: Redis 7.0 reads its clock for each, and the sum falls into another minute.
  local ends_at = redis.call('PEXPIRETIME', session.shadow)
  local right = ends_at >= 0 and bucket_to_join(ends_at)
  if not from_bucket or right == minute then return 'alive' end
  locate(session)
  take(member)
  -- Standing elsewhere as well: this member was a stray one.
  if session.bucket and session.bucket ~= minute then return 'alive' end
  if right then join_bucket(session, right) else redis.call('HDEL', session.key, 'bucket') end
  return 'alive'
end

local function claim(session, member)
  if session.id == nil then return set_aside(member, 'not a member of this form: expires:<id>') end
  local problem = wrong_type(keys_of(session))
  if problem then return set_aside(member, problem.err) end
  local has_data = redis.call('EXISTS', session.key) == 1
  if redis.call('EXISTS', session.shadow) == 1 then
    if has_data then return keep(session, member) end
    redis.call('DEL', session.shadow)
  end
  if not has_data then
    -- Only the member tells that there was a session, so whoever takes it reports it. Somebody else may have been
    -- faster, or have changed its id.
    if not take(member) then return 'already' end
    record('expired', session.id, now, 'dataLost', 1)
    return 'claimed'
  end
  local word = 'already'
  if redis.call('HEXISTS', session.key, 'ended') == 0 then
    locate(session)
    word = session.foreign and set_aside(member, session.foreign.err) or 'claimed'
    if word ~= 'already' then end_session(session, 'expired', now) end
  end
  take(member)
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
  -- Gone since it was peeked: another instance sweeps as well, and has dealt with it.
  words[i] = present and present[i] == 0 and 'already' or claim(session, member)
end
if from_bucket and not foreign_bucket then
  forget_empty_bucket(minute)
elseif foreign_bucket and #members == 0 and redis.call('ZREM', bucket_list, minute) == 1 then
  add_dead_letter('expirations:' .. minute, foreign_bucket.err)
  return { 'corrupt' }
end
return words
