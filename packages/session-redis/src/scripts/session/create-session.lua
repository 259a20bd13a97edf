#!lua
--[[
  create-session: stores a new session, and records its `created` event unless nobody wants it.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] which events each group wants; empty: all
  KEYS[7] exists while broadcast handlers want `created`
  KEYS[8..] forwarding marks of the ids that the request presented
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms
  ARGV[4] maxInactiveInterval in s
  ARGV[5] absolute timeout in s; negative: none
  ARGV[6] number of indexes
  ARGV[7] 1: somebody signs in
  ARGV[8] limit of the sessions of the principal: '<number> end-oldest', '<number> refuse', or 'until <epoch ms> <name>'
          when there is room for a session of this principal until then; empty: none
  ARGV[9] how long the session hash of a session that the limit ends is kept, in ms
  ARGV[10..] name and value of each index, field and text of each attribute

  Returns
    {'created', creation time in epoch ms}
    {'collision'}  the id is taken
    {'gone'}       the session of a presented id has just been rotated. The request still has the old token, and the
                   cookie of a new session would replace the cookie of the login
    {'refused'}    the principal has as many sessions as the limit allows
    {'again'}      the limit has ended some sessions; repeat the call, because there are more
    {'late'}       the time of the limit has passed
]]
-- paste: keys
local bucket_list, events = KEYS[1], KEYS[2]
local id, key, shadow, most, signs_in, limit, kept = ARGV[2], KEYS[3], KEYS[4], nil, ARGV[7] == '1', ARGV[8], ARGV[9]
local first_index, first_attribute, last = 10, 10 + 2 * ARGV[6], #ARGV
if KEYS[8] and redis.call('EXISTS', unpack(KEYS, 8)) > 0 then return { 'gone' } end
if redis.call('EXISTS', key, shadow, KEYS[5]) > 0 then return { 'collision' } end

-- paste: new-session
if limit ~= '' then
  -- paste: in-time, limit
  local refusal = entries and refusal_of(entries, id, limit)
  if refusal then return { refusal } end
  -- It may have ended the last session in the bucket, which is then no longer listed.
  is_new = bucket ~= nil
end
-- paste: create
return { 'created', now }
