#!lua
--[[
  create-session: stores a new session, and records its `created` event unless nobody wants it.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] which groups want `created`; empty: all do
  KEYS[7] exists while broadcast handlers want `created`
  KEYS[8..] forwarding marks of the ids that the request presented
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms
  ARGV[4] maxInactiveInterval in s
  ARGV[5] absolute timeout in s; negative: none
  ARGV[6] number of indexes
  ARGV[7..] name and value of each index, field and text of each attribute

  Returns
    {'created', creation time in epoch ms}
    {'collision'}  the id is taken
    {'gone'}       the session of a presented id has just been rotated. The request still has the old token, and the
                   cookie of a new session would replace the cookie of the login
]]
-- include: keys
local bucket_list, events = KEYS[1], KEYS[2]
local id, key, shadow = ARGV[2], KEYS[3], KEYS[4]
local first_attribute, last = 7 + 2 * ARGV[6], #ARGV
if KEYS[8] and redis.call('EXISTS', unpack(KEYS, 8)) > 0 then return { 'gone' } end
if redis.call('EXISTS', key, shadow, KEYS[5]) > 0 then return { 'collision' } end

-- include: clock
local interval, absolute_timeout, since = tonumber(ARGV[4]), tonumber(ARGV[5]), now
local absolute_expiry = absolute_timeout >= 0 and now + absolute_timeout * 1000 or nil
-- include: end-since
local bucket, is_new
if ends_at then
  -- include: buckets
  bucket = bucket_to_join(ends_at)
  is_new = not is_listed(bucket)
end
local entries
if first_attribute > 7 then
  -- include: index
  entries = new_entries(7, first_attribute - 1)
  if entries[1] then
    ARGV[last + 1], ARGV[last + 2] = 'index', recorded_form(entries)
    last = last + 2
  end
end

local wishes = redis.call('HVALS', KEYS[6])
local is_wanted = not wishes[1]
for _, wish in ipairs(wishes) do is_wanted = is_wanted or wish ~= '0' end
if is_wanted or redis.call('EXISTS', KEYS[7]) == 1 then
  -- The first write, which fails when the stream is a foreign key.
  local recorded = redis.pcall('XADD', events, '*', 'type', 'created', 'session', id, 'at', now)
  if type(recorded) == 'table' then
    -- include: unrecorded
  end
end
ARGV[last + 1], ARGV[last + 2] = 'creationTime', now
ARGV[last + 3], ARGV[last + 4] = 'lastAccessedTime', now
ARGV[last + 5], ARGV[last + 6] = 'maxInactiveInterval', ARGV[4]
last = last + 6
if absolute_expiry then
  ARGV[last + 1], ARGV[last + 2] = 'absoluteExpiry', absolute_expiry
  last = last + 2
end
if bucket then
  ARGV[last + 1], ARGV[last + 2] = 'bucket', bucket
  last = last + 2
end
-- include: write-fields
if ends_at then
  redis.call('SET', shadow, '', 'PXAT', ends_at)
  redis.call('PEXPIREAT', key, ends_at + ARGV[3])
  redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. id)
  if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end
else
  redis.call('SET', shadow, '')
end
for _, entry in ipairs(entries or {}) do redis.call('SADD', entry.set, id) end
return { 'created', now }
