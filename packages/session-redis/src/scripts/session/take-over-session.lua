#!lua
--[[
  take-over-session: stores a session that another library kept, as create-session does a new one, and leaves a mark that
  outlives the entry of the other library: that is never a session again. Neither is an entry that may have been there when
  every session was ended, or every session of its principal: nothing tells when it began.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] takeover mark of the id
  KEYS[7..] epoch; revocation marks of its principal, and of what else it is indexed by
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none, ARGV[3] id, ARGV[4] grace in ms
  ARGV[5] maxInactiveInterval in s
  ARGV[6] absolute timeout in s; negative: none
  ARGV[7] how long the entry of the other library would live, in ms, as PTTL replies: -1 for ever, 0 or -2 for none
  ARGV[8] how long the mark lives, in ms; -1: for ever
  ARGV[9] number of indexes
  ARGV[10..] name and value of each index, field and text of each attribute

  Returns
    {'created', creation time in epoch ms}
    {'gone'}       it was taken over before, or its entry has just ended
    {'refused'}    it was ended with others
    {'collision'}  the id is taken
]]
-- include: clock, arguments, new-session, takeover-mark
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local mark_key, takeover_mark, grace, left, marked_for = KEYS[5], KEYS[6], ARGV[4], tonumber(ARGV[7]), ARGV[8]
local first_attribute = 10 + 2 * ARGV[9]
local new = {
  id = ARGV[3], key = KEYS[3], shadow = KEYS[4], interval = tonumber(ARGV[5]), timeout = tonumber(ARGV[6]),
  most = left >= 0 and left or nil,
  indexes = part_of(ARGV, 10, first_attribute - 1), set = part_of(ARGV, first_attribute, #ARGV),
}

if left == 0 or left == -2 or redis.call('EXISTS', takeover_mark) == 1 then return { 'gone' } end
if redis.call('EXISTS', unpack(KEYS, 7)) > 0 then return { 'refused' } end
if redis.call('EXISTS', new.key, new.shadow, mark_key) > 0 then return { 'collision' } end
local now = now_in_ms()
begin_session(partition, new, now)
store_session(partition, new, grace, now)
leave_takeover_mark(takeover_mark, marked_for)
return { 'created', now }
