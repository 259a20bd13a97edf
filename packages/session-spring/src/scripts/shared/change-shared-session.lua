#!lua
--[[
  change-shared-session: writes the changes of a live session where Spring's indexed repository has its sessions, with a new id if there
  is to be one. Either all of it happens or nothing. Follows our forwarding marks, but for those that lead nowhere. Without changes
  it is a touch.

  KEYS[1] events stream
  ARGV[1] what Spring's keys begin with
  ARGV[2] what ours begin with
  ARGV[3] the trace that causes it, as a W3C traceparent; empty: none
  ARGV[4] id
  ARGV[5] new id; empty: the id stays
  ARGV[6] 1: remove all attributes but those that are set here, and forward nothing to the new id; 2: only the latter
  ARGV[7] how long saves are forwarded, in ms
  ARGV[8] the name of the principal from now on, behind a `=`; `=` alone: none; empty: as before
  ARGV[9] who was signed in by Spring Security alone when the session was loaded; empty: nobody
  ARGV[10] the principal from now on as the revocation mark has it; empty: none, or as before
  ARGV[11..] the change: see library/change

  Returns
    {'saved'}           for a sign-in with its time in epoch ms
    {'forwarded'}       saved, under a later id than the given one, but for the attributes that a sign-in did not keep
    {'gone', word}      there is no live session; `word`: that of the forwarding mark that leads nowhere, missing without
                        one. Or the change may not be forwarded: for a sign-in, and with 1 above, the word is then `closed`
    {'conflict', text}  the condition is false; `text` is what the attribute has now, missing without the attribute
    {'collision'}       the new id is taken
    {'revoked'}         every session of the principal was ended after the request began
    {'full', bound}     the session would hold more than this bound allows, and more than before
]]
-- include: clock, change, shared-session, shared-place, shared-end, size-estimate, hash-fields, revoked
local place = { prefix = ARGV[1], own = ARGV[2], events = KEYS[1], trace = ARGV[3] ~= '' and ARGV[3] or nil }
local id, new_id, forwarded_for, principal, spring_name = ARGV[4], ARGV[5] ~= '' and ARGV[5] or nil, ARGV[7], ARGV[8], ARGV[9]
local change, now = change_in(ARGV, 11), now_in_ms()
change.clears, change.closes = ARGV[6] == '1', ARGV[6] == '2'

-- The forwarding mark that this change leaves.
local function mark_of_change(session)
  -- include: mark-of-rotation
  local was, is = session.principal or session.signed_in or spring_name ~= '' and spring_name or nil, nil
  if principal == '' then is = was elseif principal ~= '=' then is = string.sub(principal, 2) end
  return mark_of_rotation(new_id, change, was, is)
end

-- The reply to a change that may not be made; nil when it may.
local function refusal_of(session, is_forwarded)
  if is_forwarded then
    if new_id then return { 'gone', (change.sign_in or change.clears) and 'closed' or nil } end
    -- include: forwarded-change
    local refusal = restrict_forwarded(change, session.seals)
    if refusal then return refusal end
  end
  if change.expected_field then
    -- include: update-conflict
    -- Spring removes an attribute by emptying its field.
    local refusal = conflict_with(session.key, change, is_forwarded, '')
    if refusal then return refusal end
  end
  if is_revoked(place.own, ARGV[10], change.age, now) then return { 'revoked' } end
  local own = place.own .. 'sessions:'
  local is_taken = new_id
    and redis.call('EXISTS', place.prefix .. 'sessions:' .. new_id, own .. 'ended:' .. new_id, own .. 'forwarded:' .. new_id) > 0
  return is_taken and { 'collision' } or nil
end

-- Writes what the change sets and removes, and the principal.
local function write_session(session)
  await_beginning(place, session, now)
  remove_fields(session.key, change.lost)
  write_fields(session.key, change.set)
  remove_fields(session.key, change.removed or {})
  local signed_in = place.own .. 'sessions:signed-in:' .. session.id
  if principal ~= '' then
    unlist(place, session.id, session.principal)
    unlist(place, session.id, spring_name)
    unlist(place, session.id, session.signed_in)
    session.principal, session.signed_in = string.sub(principal, 2), nil
    list(place, session.id, session.principal)
  end
  local time = not change.signs_out and redis.call('GET', signed_in)
  if change.signs_out then redis.call('DEL', signed_in) end
  time = change.sign_in and digits(now) or time and string.match(time, '^%d+')
  if time then redis.call('SET', signed_in, time .. ' ' .. (session.principal or session.signed_in or '')) end
end

local function set_interval(session)
  session.interval = change.interval
  redis.call('HSET', session.key, 'maxInactiveInterval', session.interval)
end

-- Whether the session is over by the change.
local function is_over_by_change(session)
  if not change.interval then return false end
  local since = change.keeps_idle and math.min(session.accessed, now) or now
  return since + change.interval * 1000 <= now
end

-- Lets the session go on, renewed and with its new id if there is one. Returns the former id.
local function go_on(session, before, mark)
  local former = nil
  if new_id then
    -- include: shared-rotation
    former = rename_shared(place, session, new_id, mark, forwarded_for, principal == '' and spring_name or '')
  end
  leave_place(place, former or session.id, before)
  if change.interval then set_interval(session) end
  -- A slow request must not undo a later one.
  if not change.keeps_idle and session.accessed < now then
    session.accessed = now
    redis.call('HSET', session.key, 'lastAccessedTime', digits(now))
  end
  local ends_at = end_of(session)
  if ends_at then take_place(place, session, ends_at, ends_at - now) end
  return former
end

if new_id then
  -- include: shared-rotation
  local reply = reply_of_rotation(place, id, new_id, change.sign_in, now)
  if reply then return reply end
end
local session, word = live_shared(place, id, now)
if not session then return { 'gone', word } end
local is_forwarded = session.id ~= id
local refusal, size = refusal_of(session, is_forwarded), nil
if refusal then return refusal end
if change.clears or change.sign_in then
  -- include: lost-attributes
  change.lost = lost_attributes(session.key, change)
end
local is_over = is_over_by_change(session)
size, refusal = size_after(session.key, nil, change)
if refusal and not (change.sign_in or is_over) then return refusal end
read_typed('stream', 'XLEN', place.events)
read_typed('zset', 'ZCARD', place.own .. 'ends')

local before, mark = end_of(session), new_id and mark_of_change(session)
write_session(session)
if is_over then
  leave_place(place, session.id, before)
  local how = change.interval == 0 and 'deleted' or 'expired'
  if how == 'expired' then set_interval(session) end
  end_shared(place, session, how, how == 'deleted' and 'invalidated' or '', now, spring_name)
  return { is_forwarded and 'forwarded' or 'saved', change.sign_in and digits(now) or nil }
end
local previous = go_on(session, before, mark)
if previous then record_shared(place, 'id-changed', session, now, 'previous', previous) end
if change.sign_in then record_shared(place, 'signed-in', session, now) end
return { is_forwarded and 'forwarded' or 'saved', change.sign_in and digits(now) or nil }
