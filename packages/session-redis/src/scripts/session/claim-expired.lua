#!lua flags=allow-oom
--[[
  claim-expired: claims the sessions that have expired: each end is recorded exactly once, with an `expired` event, as the
  field `ended` tells. Looking at a shadow key makes Redis notice that it has expired. A live session moves to where its end
  belongs.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] dead letters
  KEYS[4..] session hash and shadow key of each member, in turn
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3] most bytes of the partition's dead letters
  ARGV[4] minute of the bucket that holds the members; 'ends': the sorted set should hold them, but a stray key has taken
          its place; empty: a key event named them
  ARGV[5..] the members, expires:<id>; none: the whole bucket has been read

  Returns one word or number for each member; without members 'corrupt' for a bucket of a wrong type, and for each of some
  members that are no text in UTF-8
    'claimed'  this call has recorded the end of the session; also when only the member was left of it. A number says the
               same, and how many ms after the end that was
    'alive'    the session has not ended
    'already'  this call has nothing to do: another call has claimed the session, or the sweep of its member will
    'corrupt'  a key has a wrong type, or the member a foreign form: it is a dead letter now. When the stray key is
               an index, the end of the session is recorded as well
]]
-- include: clock, claim
local partition, dead = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }, KEYS[3]
local retention, most_bytes, is_set = ARGV[2], ARGV[3], ARGV[4] == 'ends'
local minute, bucket = tonumber(ARGV[4]) and ARGV[4] or nil, partition.prefix .. 'expirations:' .. ARGV[4]

local place = { minute = minute, is_set = is_set }
local claims = begin_claims(partition, place, now_in_ms(), retention, dead, most_bytes)
-- Which members are in the bucket; nil when its key has a wrong type. The first one is there because Redis asks for
-- one, and there may be no members.
local present = minute and read('SMISMEMBER', bucket, minute, unpack(ARGV, 5))
local is_stray_key, words = minute and not present, {}
for i = 5, #ARGV do
  local score = is_set and read('ZSCORE', partition.prefix .. 'ends', string.sub(ARGV[i], 9))
  local is_present = score or present and present[i - 3] == 1
  -- The member has left the bucket since this call looked: another instance sweeps the same bucket.
  words[i - 4] = present and not is_present and 'already'
    or claim(claims, ARGV[i], KEYS[2 * i - 6], KEYS[2 * i - 5], is_present)
end
if minute and present and #ARGV == 4 then
  -- What is left has reached no caller, if it is no text in UTF-8.
  for _, member in ipairs(redis.call('SSCAN', bucket, '0', 'COUNT', 100)[2]) do
    local is_text = not string.find(member, '[\128-\255]')
    if not is_text then table.insert(words, bury_member(claims, member, true, 'not a member of this form: expires:<id>')) end
  end
end
if is_stray_key then claims.minute = nil end
finish_claims(claims)
if is_stray_key and #ARGV == 4 then
  local remove = function() return redis.call('ZREM', partition.bucket_list, minute) == 1 end
  if bury(claims, 'expirations:' .. minute, wrong_type('set', bucket).err, remove) then return { 'corrupt' } end
end
return words
