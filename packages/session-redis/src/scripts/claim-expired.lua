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
  ARGV[4] minute of the bucket in which the members were found; empty: a key event named them
  ARGV[5..] the members, expires:<id>

  Returns one word for each member
    'claimed'  it is over, and this call has recorded that; also when only the member was left of it
    'alive'
    'already'  it was over, and another call has recorded that
    'corrupt'  a key has a foreign type, or the member a foreign form: among the dead letters now
]]
-- include: store, expiration, session
local minute = ARGV[4]
local from_bucket = minute ~= ''
local now = now_in_ms()

-- Takes the member out of the bucket it was found in; 1 when it was still there.
local function take(member)
  return from_bucket and leave_bucket(member, minute) or 0
end

local function set_aside(member, reason)
  take(member)
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', 10000, '*', 'member', member, 'reason', reason, 'at', integer(now))
  return 'corrupt'
end

local function keep(session, member)
  local ttl = redis.call('PTTL', session.shadow)
  local right = ttl >= 0 and bucket_of(now + ttl)
  if not from_bucket or right == minute then return 'alive' end
  local recorded = redis.call('HGET', session.key, 'bucket')
  take(member)
  -- Recorded elsewhere: this member was a stray one.
  if recorded and recorded ~= minute then return 'alive' end
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
    if take(member) == 0 then return 'already' end
    record('expired', session.id, now, 'dataLost', 1)
    return 'claimed'
  end
  local ended = redis.call('HEXISTS', session.key, 'ended') == 1
  if not ended then end_session(session, 'expired', now) end
  take(member)
  return ended and 'already' or 'claimed'
end

local problem = wrong_type(shared_keys()) or wrong_type({ { KEYS[3], 'stream' } })
if problem then return problem end
local words = {}
for i = 5, #ARGV do
  local member = ARGV[i]
  local at = 4 + 2 * (i - 5)
  words[i - 4] = claim({ id = string.match(member, '^expires:(.+)$'), key = KEYS[at], shadow = KEYS[at + 1] }, member)
end
if from_bucket then forget_empty_bucket(minute) end
return words
