#!lua
--[[
  change-session: writes all changes of a live session that keeps its id, or none: attributes as save-attributes does, and
  timeouts, indexes, a sign-out, the data key. A session whose new times are already over ends. Follows forwarding marks:
  `SessionChange` of session-core states what a save may do after a rotation.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] session hash, KEYS[4] shadow key
  KEYS[5..] for a change of indexes: forwarding mark of the id. It or the session hash is missing, so Redis lets the call wait
          while a slot moves: it would refuse to create an index again that this call has emptied
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none, ARGV[3] id, ARGV[4] grace in ms
  ARGV[5] how long the session hash is kept after the end, in ms
  ARGV[6..] the change: see library/change

  Returns
    {'saved'}
    {'forwarded'}       saved, under a later id than the given one, but for the attributes that a sign-in did not keep
    {'gone', word}      there is no live session; `word`: of a forwarding mark that leads nowhere. Or the save is forwarded,
                        and changes more than attributes or its condition is false: the request must change or read no more
    {'resealed', id, text}  the session has another data key than this save brings: `text`, wrapped for `id`. Without
                        `text`: it has none, and this save brings none for that id
    {'conflict', text}  the condition is false; `text` is what the attribute has now, missing without the attribute
    {'late'}            the time of the limit has passed
    {'full', bound}     the session would hold more than this bound allows, and more than before
    {'revoked'}         every session of the principal was ended after the request began
    {'refused'}         the principal has as many sessions as the limit allows
    {'again'}           the limit has ended some sessions; repeat the call, because there are more
    {'unplaced', name}  the session is one of this other principal: there must be room with that one
]]
-- include: whole-session, change, clock, times, renewal, size-estimate, write-change, index-moves
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local id, grace, retention, change = ARGV[3], ARGV[4], ARGV[5], change_in(ARGV, 6)

local session, word = whole_session(partition.prefix, id, KEYS[3], KEYS[4])
if not session then return { 'gone', word } end
local is_forwarded, refusal, data_key, size, entries = session.id ~= id, nil, nil, nil, nil
if is_forwarded then
  -- include: forwarded-change
  refusal = restrict_forwarded(change, session.seals)
  if refusal then return refusal end
end
if change.data_keys[1] then
  -- include: data-keys
  refusal, data_key = other_data_key(session, change), data_key_for(session.id, change)
  if refusal then return refusal end
end
if change.expected_field then
  -- include: update-conflict
  refusal = conflict_with(session.key, change, is_forwarded)
  if refusal then return refusal end
end

local now = now_in_ms()
if is_late(change.limit, now) then return { 'late' } end
local ends_at, absolute_expiry, sets_end, is_over = times_after(session, change, now)
add_changes(session, change, absolute_expiry, data_key, now)
if is_over then
  -- include: end-changed
  end_changed(partition, session, change, retention, now)
  return { is_forwarded and 'forwarded' or 'saved' }
end
size, refusal = size_after(session.key, session.size, change)
if refusal then return refusal end
if change.indexes[1] then
  -- include: index-changes
  entries, refusal = index_changes(partition, session, change, retention, now)
  if refusal then return refusal end
end

if sets_end then
  renew(partition.prefix, KEYS[1], KEYS[2], session.id, session.key, session.shadow, session.bucket, ends_at, now, grace)
end
if entries then move_entries(session, session.id, entries, change, now) end
add_renewal(session, change, size, now)
write_change(session.key, change)
return { is_forwarded and 'forwarded' or 'saved' }
