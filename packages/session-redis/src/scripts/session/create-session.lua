#!lua
--[[
  create-session: stores a new session, and records its `created` event unless nobody wants it.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6..] forwarding marks of the ids that the request presented
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none, ARGV[3] id, ARGV[4] grace in ms
  ARGV[5] how long the session hash of a session that the limit ends is kept, in ms
  ARGV[6] maxInactiveInterval in s
  ARGV[7] absolute timeout in s; negative: none
  ARGV[8] who signs in, for the event: fields of the session as JSON; empty: nobody does
  ARGV[9] limit of the sessions of the principal: see library/limit-argument; empty: none
  ARGV[10] how long ago the request began that makes the session one of a principal, in ms; empty: no matter when
  ARGV[11] number of indexes
  ARGV[12..] name and value of each index, field and text of each attribute

  Returns
    {'created', creation time in epoch ms}
    {'gone'}       the session of a presented id was rotated, and goes on: a new cookie would replace that of the login
    {'collision'}  the id is taken
    {'late'}       the time of the limit has passed
    {'revoked'}    every session of the principal was ended after the request began
    {'refused'}    the principal has as many sessions as the limit allows
    {'again'}      the limit has ended some sessions; repeat the call, because there are more
]]
-- include: clock, arguments, new-session
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local mark_key, grace, retention, limit, age, first_attribute = KEYS[5], ARGV[4], ARGV[5], ARGV[9], tonumber(ARGV[10]), 12 + 2 * ARGV[11]
local new = {
  -- With those that begin_session() adds: a table that grows is made anew.
  id = ARGV[3], key = KEYS[3], shadow = KEYS[4], interval = tonumber(ARGV[6]), timeout = tonumber(ARGV[7]),
  who = ARGV[8] ~= '' and ARGV[8] or nil, ends_at = nil, place = nil, absolute_expiry = nil, entries = nil, index = nil,
  indexes = part_of(ARGV, 12, first_attribute - 1), set = part_of(ARGV, first_attribute, #ARGV),
}

if KEYS[6] and redis.call('EXISTS', unpack(KEYS, 6)) > 0 then
  -- include: goes-on
  for i = 6, #KEYS do
    if goes_on(partition.prefix, redis.call('GET', KEYS[i])) then return { 'gone' } end
  end
end
if redis.call('EXISTS', new.key, new.shadow, mark_key) > 0 then return { 'collision' } end
local now = now_in_ms()
begin_session(partition, new, now)
if age then
  -- include: index, revoked
  local principal = principal_in(new.entries or {})
  if principal and is_revoked(partition.prefix, principal.value, age, now) then return { 'revoked' } end
end
if limit ~= '' then
  -- include: index, limit-argument, limit-in-one-partition
  local principal = principal_in(new.entries or {})
  local ending = { how = 'deleted', cause = 'limit', at = now, retention = retention }
  local refusal = principal and make_room(partition, principal.set, new.id, limit_in(limit), ending)
  if refusal then return refusal end
  -- It may have ended the last session in the bucket, which is then no longer listed.
  if new.place then new.place.is_new = new.place.bucket ~= nil end
end
store_session(partition, new, grace, now)
return { 'created', now }
