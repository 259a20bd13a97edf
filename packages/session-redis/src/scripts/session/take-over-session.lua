#!lua
--[[
  take-over-session: stores a session that another library kept, as create-session does a new one, and leaves a mark that
  it was taken over. The mark outlives the entry of the other library: whatever has become of the session here, that entry
  is never a session again. Neither is one that may have been there when every session was ended, or every session of its
  principal: nothing tells when it began.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] which events each group wants; empty: all
  KEYS[7] exists while broadcast handlers want `created`
  KEYS[8] takeover mark of the id
  KEYS[9..] epoch; revocation marks of its principal, and of what else it is indexed by
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms
  ARGV[4] maxInactiveInterval in s
  ARGV[5] absolute timeout in s; negative: none
  ARGV[6] number of indexes
  ARGV[7] how long the entry of the other library would live, in ms, as PTTL replies: -1 for ever, 0 or -2 for none
  ARGV[8..] name and value of each index, field and text of each attribute

  Returns
    {'created', creation time in epoch ms}
    {'collision'}  the id is taken
    {'gone'}       it was taken over before, or its entry has just ended
    {'refused'}    it was ended with others
]]
-- paste: keys
local bucket_list, events = KEYS[1], KEYS[2]
local id, key, shadow, most, signs_in = ARGV[2], KEYS[3], KEYS[4], tonumber(ARGV[7]), false
local first_index, first_attribute, last = 8, 8 + 2 * ARGV[6], #ARGV
if most == 0 or most == -2 or redis.call('EXISTS', KEYS[8]) == 1 then return { 'gone' } end
if redis.call('EXISTS', unpack(KEYS, 9)) > 0 then return { 'refused' } end
if redis.call('EXISTS', key, shadow, KEYS[5]) > 0 then return { 'collision' } end
if most < 0 then most = nil end
-- paste: new-session, create
if most then
  redis.call('SET', KEYS[8], '', 'PX', most)
else
  redis.call('SET', KEYS[8], '')
end
return { 'created', now }
