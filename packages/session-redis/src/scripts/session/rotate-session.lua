#!lua
--[[
  rotate-session: gives a live session a new id, with the changes that change-session makes, or does nothing. From then on
  the old id finds nothing, but for a while its forwarding mark leads saves to the new one, unless the session has another
  principal by then. A session whose new times are already over ends, and keeps its id.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] session hash, KEYS[7] shadow key and KEYS[8] forwarding mark of the new id
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none, ARGV[3] id, ARGV[4] grace in ms
  ARGV[5] how long the session hash is kept after the end, in ms
  ARGV[6] new id, ARGV[7] how long saves are forwarded, in ms
  ARGV[8] 1: remove all attributes but those that are set here, and forward nothing to the new id; 2: only the latter
  ARGV[9..] the change: see library/change. The rule of a sign-in stands in the forwarding mark, too

  Returns
    {'saved'}           for a sign-in with its time in epoch ms
    {'gone', word}      as in change-session, or another request has rotated it: for a sign-in, and with 1 above, the word
                        is then `closed`. Or somebody signs in to a session that the epoch ends
    {'resealed', id, text}  as in change-session, or the session has a data key and this save brings none
    {'collision'}       the new id is taken
    {'conflict', text}  this one and the following: as in change-session
    {'full', bound}
    {'late'}
    {'revoked'}
    {'refused'}
    {'again'}
    {'unplaced', name}
]]
-- include: whole-session, change, clock, times, set-end, member, size-estimate, data-keys, record, wanted, epoch, write-change
-- include: index-moves, lost-attributes, mark-of-rotation
-- A function that takes what it needs from outside costs each call more.

-- The reply to a rotation that may not be made; nil when it may.
local function refusal_of(partition, session, new, change, now)
  -- A request that was open while every session was ended must not let one of them begin anew.
  local epoch = change.sign_in and epoch_at(partition.prefix .. 'epoch')
  if epoch and is_ended_by(epoch, session.created_at, session.authenticated_at) then return { 'gone' } end
  local refusal = other_data_key(session, change)
  if not refusal and change.expected_field then
    -- include: update-conflict
    refusal = conflict_with(session.key, change, false)
  end
  if not refusal and redis.call('EXISTS', new.key, new.shadow, new.mark_key) > 0 then return { 'collision' } end
  return refusal or is_late(change.limit, now) and { 'late' } or nil
end

-- Renews the session, until `ends_at` unless that is not `set`, and records its new id.
local function renew_and_record(partition, session, new_id, change, set, ends_at, now, grace)
  local is_elsewhere
  is_elsewhere, session.is_in_bucket, session.due = is_misplaced(partition.prefix, session.id, session.bucket, ends_at, now)
  if set and is_elsewhere then
    -- include: keys, rebucket
    read_typed('stream', 'XLEN', partition.events)
    rebucket(partition, session, ends_at, now)
  end
  record(partition, 'id-changed', new_id, now, 'previous', session.id)
  if change.sign_in and is_wanted(partition.events, 'signed-in') then record(partition, 'signed-in', new_id, now, 'who', change.who) end
  if set then set_end(session.key, session.shadow, ends_at, grace) end
end

-- Gives the session the new id everywhere but in its indexes.
local function rename(prefix, session, new)
  if session.is_in_bucket then
    local bucket = prefix .. 'expirations:' .. session.bucket
    redis.call('SADD', bucket, 'expires:' .. new.id)
    redis.call('SREM', bucket, 'expires:' .. session.id)
  elseif session.due then
    redis.call('ZADD', prefix .. 'ends', session.due, new.id)
    redis.call('ZREM', prefix .. 'ends', session.id)
  end
  redis.call('RENAME', session.key, new.key)
  redis.call('RENAME', session.shadow, new.shadow)
end

local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local id, grace, retention, forwarded_for, change = ARGV[3], ARGV[4], ARGV[5], ARGV[7], change_in(ARGV, 9)
local new, mark_key = { id = ARGV[6], key = KEYS[6], shadow = KEYS[7], mark_key = KEYS[8] }, KEYS[5]
change.clears, change.closes = ARGV[8] == '1', ARGV[8] == '2'
local session, word = whole_session(partition.prefix, id, KEYS[3], KEYS[4])
if not session or session.id ~= id then
  -- include: forwarding-marks
  -- The session has another id by now, or there is none. A rotation that was sent twice finds its own forwarding mark.
  local mark, begins = redis.call('GET', mark_key), change.sign_in or change.clears
  if not mark or target_of(mark) ~= new.id then return { 'gone', session and begins and 'closed' or word } end
  session, word = whole_session(partition.prefix, new.id, new.key, new.shadow)
  return { (session or word) and 'saved' or 'gone', session and change.sign_in and session.authenticated_at or nil }
end
local now, size, entries = now_in_ms(), nil, nil
local refusal = refusal_of(partition, session, new, change, now)
if refusal then return refusal end
change.lost = lost_attributes(session.key, change)
local ends_at, absolute_expiry, sets_end, is_over = times_after(session, change, now)
add_changes(session, change, absolute_expiry, data_key_for(is_over and id or new.id, change), now)
if is_over then
  -- include: end-changed
  end_changed(partition, session, change, retention, now)
  return { 'saved', change.sign_in and now or nil }
end
size, refusal = size_after(session.key, session.size, change)
-- A session must remain usable by who signs in.
if refusal and not change.sign_in then return refusal end
if session.index or change.indexes[1] then
  -- include: index-changes
  entries, refusal = index_changes(partition, session, change, retention, now)
  if refusal then return refusal end
end
renew_and_record(partition, session, new.id, change, sets_end, ends_at, now, grace)
if entries then move_entries(session, new.id, entries, change, now) end
add_renewal(session, change, size, now)
write_change(session.key, change)
rename(partition.prefix, session, new)
redis.call('SET', mark_key, mark_of_rotation(new.id, change, (entries or {}).was, (entries or {}).is), 'PX', forwarded_for)
return { 'saved', change.sign_in and now or nil }
