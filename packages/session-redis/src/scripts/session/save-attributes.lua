#!lua
--[[
  save-attributes: sets and removes attributes of a live session, and renews its idle timeout unless the request keeps it
  idle, or does nothing. In the very millisecond of its absolute timeout, the session ends. Follows forwarding marks.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  ARGV[1] prefix of the partition's keys, ARGV[2] id
  ARGV[3] grace in ms; empty: keep the session idle: this is no access
  ARGV[4] how long the session hash is kept after the end, in ms
  ARGV[5] number of fields to set
  ARGV[6..] field and text of each; then, where there are any, the details:
            most attributes and most bytes of the session; empty: any
            a field that must have the expected text, and the SHA-1 of that, in hex; empty: there must be no such field.
            Without a condition both are empty
            the fields to remove

  Returns
    {'saved'}
    {'forwarded'}       saved, under a later id than the given one, but for the attributes that a sign-in did not keep
    {'gone', word}      there is no live session, or the save is forwarded and its condition is false: see change-session
    {'conflict', text}  as in change-session
    {'full', bound}     as in change-session
]]
-- include: live-session
local prefix, asked_id, grace, retention, details = ARGV[1], ARGV[2], ARGV[3], ARGV[4], 6 + 2 * ARGV[5]

local fields, id, key, shadow, seals = live_session(prefix, asked_id, KEYS[3], KEYS[4], 'size')
if not fields then return { 'gone', id } end

-- The change as a table, which few saves need.
local function whole_change()
  -- include: arguments
  local field = ARGV[details + 2]
  local change = {
    set = part_of(ARGV, 6, details - 1), max_attributes = tonumber(ARGV[details]), max_size = tonumber(ARGV[details + 1]),
    expected_field = field ~= '' and field or nil, expected_hash = ARGV[details + 3],
    removed = ARGV[details + 4] and part_of(ARGV, details + 4, #ARGV),
  }
  if seals then
    -- include: forwarded-change
    leave_out_sealed(change, seals)
  end
  return change
end

local reply, size, change, accessed = { id == asked_id and 'saved' or 'forwarded' }, tonumber(fields[5]), nil, nil
if ARGV[details] or size then
  local refusal
  change = whole_change()
  if change.expected_field then
    -- include: update-conflict
    refusal = conflict_with(key, change, id ~= asked_id)
  end
  if not refusal and (size or change.max_size) then
    -- include: size-estimate
    size, refusal = size_after(key, size, change)
  end
  if refusal then return refusal end
end
if grace ~= '' then
  -- include: clock, session-timeouts, renewal
  local before, bucket, now = tonumber(fields[1]), fields[4], now_in_ms()
  local ends_at = end_after(now, tonumber(fields[2]), tonumber(fields[3]))
  if ends_at and ends_at <= now then
    -- include: end-changed
    local session = { id = id, key = key, shadow = shadow, bucket = bucket }
    end_changed({ prefix = prefix, bucket_list = KEYS[1], events = KEYS[2] }, session, change or whole_change(), retention, now)
    return reply
  end
  renew(prefix, KEYS[1], KEYS[2], id, key, shadow, bucket, ends_at, now, grace)
  -- A slow request must not undo a later one.
  if not before or before < now then accessed = now end
end
local is_plain = accessed and not (ARGV[details + 4] or seals or details > 4000)
if is_plain and size then
  redis.call('HSET', key, 'lastAccessedTime', accessed, 'size', size, unpack(ARGV, 6, details - 1))
elseif is_plain then
  redis.call('HSET', key, 'lastAccessedTime', accessed, unpack(ARGV, 6, details - 1))
else
  -- include: write-change
  change = change or whole_change()
  if accessed then put(change, 'lastAccessedTime', accessed) end
  if size then put(change, 'size', size) end
  write_change(key, change)
end
return reply
