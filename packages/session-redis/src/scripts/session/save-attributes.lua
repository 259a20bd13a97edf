#!lua
--[[
  save-attributes: sets and removes attributes of a live session, and renews its idle timeout unless the request keeps it
  idle. In the very millisecond of its absolute timeout, the session ends with them. Either all of it happens or nothing.
  Follows forwarding marks. `SessionChange` of session-core states what a save may do after a login has changed the id.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms
  ARGV[4] how long the session hash is kept after the end, in ms
  ARGV[5] number of fields to set
  ARGV[6..] field and text of each; then, where there are any, the details:
            most attributes and most bytes of the session; empty: any
            1: keep the session idle: this is no access
            a field that must have the expected text, and the SHA-1 of that, in hex; empty: there must be no such field.
            Without a condition both are empty
            the fields to remove

  Returns
    {'saved'}
    {'forwarded'}       saved, under a later id than the given one, but for the attributes that a sign-in did not keep
    {'gone'}            there is no live session. Or the save is forwarded and its condition is false: the old token must
                        not read anything any more
    {'conflict', text}  the condition is false; `text` is what the attribute has now, missing without the attribute
    {'full', bound}     the session would hold more than this bound allows, and more than before
]]
-- include: arguments, live-session, clock, renewal, hash-fields
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2] }
local id, grace, retention, details = ARGV[2], ARGV[3], ARGV[4], 6 + 2 * ARGV[5]
local change = {
  set = part_of(ARGV, 6, details - 1), max_attributes = tonumber(ARGV[details]), max_size = tonumber(ARGV[details + 1]),
  keeps_idle = ARGV[details + 2] == '1', expected_field = ARGV[details + 3], expected_hash = ARGV[details + 4],
  removed = ARGV[details + 5] and part_of(ARGV, details + 5, #ARGV),
}

local session, fields = live_session(partition.prefix, id, KEYS[3], KEYS[4], 'size')
if not session then return { 'gone' } end
local is_forwarded, size, refusal = session.id ~= id, tonumber(fields[5]), nil
if session.seals then
  -- include: forwarded-change
  leave_out_sealed(change, session.seals)
end
if change.expected_field and change.expected_field ~= '' then
  -- include: compare-and-set
  refusal = conflict_with(session, change, is_forwarded)
  if refusal then return refusal end
end
if size or change.max_size then
  -- include: size-estimate
  size, refusal = size_after(session.key, size, change)
  if refusal then return refusal end
end

local set, now = change.set, now_in_ms()
if not change.keeps_idle then
  local ends_at = end_after(now, session.interval, session.absolute_expiry)
  if ends_at and ends_at <= now then
    -- include: end-changed
    session.index, change.lost, change.removed = redis.call('HGET', session.key, 'index'), {}, change.removed or {}
    end_changed(partition, session, change, retention, now)
    return { is_forwarded and 'forwarded' or 'saved' }
  end
  renew(partition, session, ends_at, now, grace)
  -- A slow request must not undo a later one.
  if not session.accessed or session.accessed < now then set[#set + 1], set[#set + 2] = 'lastAccessedTime', now end
end
if size then set[#set + 1], set[#set + 2] = 'size', size end
write_fields(session.key, set)
if change.removed then remove_fields(session.key, change.removed) end
return { is_forwarded and 'forwarded' or 'saved' }
