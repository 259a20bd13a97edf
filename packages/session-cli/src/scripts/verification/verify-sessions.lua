#!lua flags=allow-oom
--[[
  verify-sessions: looks whether sessions have what belongs to them: their end where it is noticed, their entries in indexes, and
  a shadow key and a session hash that fit each other.

  KEYS[1] bucket list
  KEYS[2] events stream
  ARGV[1] 1: mend what is wrong
  ARGV[2] prefix of the partition's keys
  ARGV[3] by how much a session hash outlives its shadow key, in ms
  ARGV[4] how long a session hash is kept after the end, in ms
  ARGV[5] all; hash: only whether they have a session hash; misplaced: they belong to another partition; copies: and are in that
          one, too
  ARGV[6..] ids

  Returns the id of each session that is wrong, and the rule that it breaks, in turn
]]
-- include: clock, findings, index, rebucket, session-timeouts, set-end
local found, grace, retention, kind = findings(ARGV[1]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local partition = { prefix = ARGV[2], bucket_list = KEYS[1], events = KEYS[2] }
local prefix, now = partition.prefix, now_in_ms()

-- What a hash says of its session; nil when there is none. A stray key in its place is none.
local function session_of(id)
  local key = prefix .. 'sessions:' .. id
  local names = { 'ended', 'creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'authenticatedAt' }
  local fields = read('HMGET', key, 'bucket', 'index', unpack(names))
  if not fields or redis.call('EXISTS', key) == 0 then return nil end
  local session = { id = id, key = key, bucket = fields[1], index = fields[2], has_ended = fields[3] }
  session.created_at, session.accessed_at = tonumber(fields[4] or nil), tonumber(fields[5] or nil)
  session.interval, session.absolute_expiry = tonumber(fields[6] or nil), tonumber(fields[7] or nil)
  session.authenticated_at = tonumber(fields[8] or nil)
  return session
end

-- Where the session really stands: whether in the bucket that it records, and its time in the sorted set.
local function find_member(session)
  local bucket = prefix .. 'expirations:' .. (session.bucket or '')
  session.is_in_bucket = tonumber(session.bucket or nil) and read('SISMEMBER', bucket, 'expires:' .. session.id) == 1
  session.due = tonumber(read('ZSCORE', prefix .. 'ends', session.id) or nil)
end

-- `ends_at`: when it has to be noticed at the latest.
local function verify_schedule(session, ends_at)
  find_member(session)
  local is_late = session.is_in_bucket and tonumber(session.bucket) > ends_at + 60000 or session.due and session.due > ends_at
  local problem = not (session.is_in_bucket or session.due) and 'end-not-scheduled' or is_late and 'end-scheduled-late'
  if problem then note(found, session.id, problem, function() rebucket(partition, session, ends_at, now) end) end
end

local function verify_indexes(session)
  for _, entry in ipairs(session.index and recorded_entries(prefix, session.index) or {}) do
    if not redis.call('ZSCORE', entry.set, session.id) then
      local score = session.authenticated_at or session.created_at or now
      note(found, session.id, 'index-entry-missing', function() redis.call('ZADD', entry.set, 'NX', score, session.id) end)
    end
  end
end

local function verify_ended(session, shadow)
  if redis.call('EXISTS', shadow) == 1 then
    note(found, session.id, 'ended-session-alive', function() redis.call('DEL', shadow) end)
  end
  if redis.call('PTTL', session.key) == -1 then
    note(found, session.id, 'ended-session-stays', function() redis.call('PEXPIRE', session.key, retention) end)
  end
end

-- When a live session ends, nil for never; and a hash that outlives it by the grace period.
local function verify_end(session, shadow)
  local ends_at, hash_end = redis.call('PEXPIRETIME', shadow), redis.call('PEXPIRETIME', session.key)
  if ends_at < 0 and (session.interval >= 0 or session.absolute_expiry) then
    ends_at = end_after(session.accessed_at, session.interval, session.absolute_expiry)
    -- It may have been over for longer than the grace period: whoever records the end has to find the data.
    note(found, session.id, 'session-never-ends', function() set_end(session.key, shadow, math.max(ends_at, now), grace) end)
    return ends_at
  end
  local its_end = ends_at >= 0 and ends_at or nil
  if (ends_at < 0) ~= (hash_end < 0) or hash_end < ends_at then
    note(found, session.id, 'session-hash-expiry', function() set_end(session.key, shadow, its_end, grace) end)
  end
  return its_end
end

-- The sweep that finds it claims it. Of a copy, the session itself tells when that ends.
local function end_misplaced(session, shadow)
  local ends_at = kind == 'misplaced' and now or nil
  find_member(session)
  rebucket(partition, session, ends_at, now)
  redis.call('DEL', shadow)
  if ends_at then return end
  for _, entry in ipairs(session.index and recorded_entries(prefix, session.index) or {}) do
    redis.call('ZREM', entry.set, session.id)
  end
  redis.call('UNLINK', session.key)
end

local function verify_live(session, shadow)
  local ends_at = verify_end(session, shadow)
  if ends_at then verify_schedule(session, ends_at) end
  verify_indexes(session)
end

local function verify(id)
  local session, shadow = session_of(id), prefix .. 'sessions:expires:' .. id
  local is_alive = redis.call('EXISTS', shadow) == 1
  if not session then
    local is_lost = is_alive and redis.call('EXISTS', prefix .. 'sessions:' .. id) == 0
    if is_lost then note(found, id, 'shadow-without-session', function() redis.call('DEL', shadow) end) end
  elseif kind == 'hash' then
    return
  elseif session.has_ended then
    verify_ended(session, shadow)
  elseif not is_alive then
    verify_schedule(session, now)
  elseif kind ~= 'all' then
    note(found, id, 'session-misplaced', function() end_misplaced(session, shadow) end)
  elseif not (session.created_at and session.accessed_at and session.interval) then
    note(found, id, 'session-unreadable', function()
      redis.call('DEL', shadow)
      verify_schedule(session, now)
    end)
  else
    verify_live(session, shadow)
  end
end

for i = 6, #ARGV do verify(ARGV[i]) end
return found
