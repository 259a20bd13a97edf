#!lua
--[[
  save-session: writes the changes of a live session, and renews its idle timeout unless the request keeps it idle.
  Either all of it happens or nothing. A session whose new times are already over ends. `SessionChange` of session-core
  states what a save may do after a login has changed the id.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id; this and the next ones only when the session is rotated
  KEYS[6] session hash of the new id
  KEYS[7] shadow key of the new id
  KEYS[8..] forwarding mark of the new id; while sessions move to other partitions, these three in the other one as well
  ARGV[1] prefix of the partition's keys
  ARGV[2] id
  ARGV[3] grace in ms
  ARGV[4] how long the session hash is kept after the end, in ms
  ARGV[5] number of the next arguments that are no attributes. Most saves only set attributes: 0. They have none of these
  ARGV[6] new id; the same as ARGV[2] unless the session is rotated
  ARGV[7] maxInactiveInterval in s; empty: unchanged; 0: end the session
  ARGV[8] absolute timeout in s since the later of the creation and the sign-in; empty: unchanged; negative: none
  ARGV[9] 1: keep the session idle: this is no access, and the idle timeout counts from the last access
  ARGV[10] condition: 'any', 'hash' (the field ARGV[11] has a text with the hash ARGV[12]) or 'none' (there is no such
           field). Or 'clear', with a new id: remove all attributes but those that are set here, and forward nothing to
           the new id
  ARGV[11] field of the condition
  ARGV[12] SHA-1 of the text of the condition, in hex: the text itself may be large
  ARGV[13] 'none': nobody is signed in any more, unless the save is forwarded. Or, with a new id, which attributes a sign-in keeps: a KeptAttributes of
           session-core as JSON. It stands in the forwarding mark, too. Empty: neither
  ARGV[14] number of index changes
  ARGV[15] limit of the sessions of the principal: '<number> end-oldest', '<number> refuse', or 'until <epoch ms> <name>'
           when there is room for a session of this principal until then; empty: none
  ARGV[16..] index and value (empty: leave the index) of each change, fields to remove, field and text of each attribute.
             Then, if the session has bounds and the save sets attributes that count, 'size', the size of these, and the
             largest size of the session: see includes/fit.
             Then, unless ARGV[5] is 0, the data key of encrypted attributes if it is to be stored: 'dataKey:', the id
             for which it is wrapped, and its text; once for each id that the session may have in the end

  Returns
    {'saved'}            for a sign-in with its time in epoch ms
    {'forwarded'}        saved, under a later id than the given one, but for the attributes that a sign-in did not keep
    {'gone'}             there is no live session, or a sign-in to one that the epoch ends. Or another request has rotated it, and this save changes more than
                         attributes or its condition is false: a request that was open during a login must not change
                         or read what belongs to the login
    {'collision'}        the new id is taken
    {'full', bound}      the session would hold more than this bound allows, and more than before
    {'refused'}          the principal has as many sessions as the limit allows
    {'again'}            the limit has ended some sessions; repeat the call, because there are more
    {'late'}             the time of the limit has passed
    {'unplaced', name}   the session, which is rotated, is one of this other principal: there must be room with that one
    {'resealed', id, text}  the session has another data key than this save brings, or one and this save brings none with
                         the new id; `text` is that data key, and `id` the id for which it is wrapped. Without `text`:
                         the session has none, and this save brings none for that id
    {'conflict', text}   the condition is false; `text` is what the attribute has now, missing without the attribute
]]
if KEYS[5] and ARGV[10] == 'clear' and redis.pcall('GET', KEYS[5]) == 'cleared:' .. ARGV[6] then
  -- It was sent twice: its mark leads nowhere, so the session is not found through it.
  return { redis.call('EXISTS', KEYS[7]) == 1 and 'saved' or 'gone' }
end
-- paste: keys, live
local first_attribute, last = 6 + ARGV[5], #ARGV
local first_removed, last_removed = first_attribute, first_attribute - 1
local condition, new_id, new_interval, new_timeout, kept_rule, limit, mark = 'any', nil, nil, nil, '', '', nil
local rotates, keeps_idle, clears, signs_in, changes_index = false, false, false, false, false
local data_keys
if first_attribute > 6 then
  new_id, new_interval, new_timeout, condition = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[10]
  kept_rule, limit, first_removed = ARGV[13], ARGV[15], 16 + 2 * ARGV[14]
  rotates, keeps_idle, clears = new_id ~= ARGV[2], ARGV[9] == '1', condition == 'clear'
  signs_in, changes_index = kept_rule ~= '' and kept_rule ~= 'none', first_removed > 16
  mark = clears and 'cleared:' .. new_id or signs_in and new_id .. ' ' .. kept_rule or new_id
  while last > first_attribute and string.sub(ARGV[last - 1], 1, 8) == 'dataKey:' do
    data_keys = data_keys or {}
    data_keys[string.sub(ARGV[last - 1], 9)], last = ARGV[last], last - 2
  end
end
local largest, added
if (last - first_attribute) % 2 == 0 then added, largest, last = ARGV[last - 1], ARGV[last], last - 3 end
local fields
if rotates or changes_index then
  fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'bucket', 'size',
    'index', 'authenticatedAt', 'creationTime', 'dataKey')
else
  fields = redis.pcall('HMGET', key, 'lastAccessedTime', 'maxInactiveInterval', 'absoluteExpiry', 'bucket', 'size')
end
if not fields[1] then
  -- paste: incomplete
end

local reply = id == ARGV[2] and 'saved' or 'forwarded'
if id ~= ARGV[2] then
  -- A rotation that was sent twice finds the forwarding mark that it left itself.
  if rotates and redis.call('GET', KEYS[5]) == mark then
    return { 'saved', signs_in and redis.call('HGET', key, 'authenticatedAt') or nil }
  end
  if rotates or changes_index or new_timeout or (new_interval and new_interval ~= 0) then return { 'gone' } end
end
if signs_in then
  local epoch = tonumber(redis.call('HGET', prefix .. 'epoch', 'at'))
  -- A request that was open while every session was ended must not let one of them begin anew.
  if epoch and math.max(tonumber(fields[7]) or 0, tonumber(fields[8]) or 0) <= epoch then return { 'gone' } end
end
if rotates or data_keys then
  -- paste: data-key
end
if seals then
  -- paste: unsealed
end
if condition ~= 'any' and not clears then
  local current = redis.call('HGET', key, ARGV[11])
  local is_expected = condition == 'none' and not current or condition == 'hash' and current
    and redis.sha1hex(current) == ARGV[12]
  -- Also when the text equals the new one: another request may have counted from 1 to 2 as well.
  if not is_expected then
    -- The old token must not read anything any more, so a forwarded save does not learn the text.
    if reply == 'forwarded' then return { 'gone' } end
    return { 'conflict', current }
  end
end
if rotates and redis.call('EXISTS', KEYS[6], KEYS[7], unpack(KEYS, 8)) > 0 then return { 'collision' } end
local stale
if clears or signs_in then
  stale = {}
  -- paste: stale-attributes
end

-- paste: clock, in-time
local accessed, absolute_expiry = tonumber(fields[1]), tonumber(fields[3])
if new_timeout then
  local start = now
  if not signs_in then
    local times = redis.call('HMGET', key, 'creationTime', 'authenticatedAt')
    start = math.max(times[1], kept_rule == '' and times[2] or 0)
  end
  absolute_expiry = new_timeout >= 0 and start + new_timeout * 1000 or nil
end
local interval, since = new_interval or tonumber(fields[2]), now
if keeps_idle and accessed and accessed < now then since = accessed end
-- paste: end-since
local sets_end = not keeps_idle or new_interval or new_timeout
local ends = sets_end and ends_at and ends_at <= now
local bucket, is_in, due, moves = fields[4], nil, nil, nil

if ends then
  local index, how, kept, is_wanted = redis.call('HGET', key, 'index'), 'expired', ARGV[4], nil
  if new_interval == 0 then how = 'deleted' end
  -- paste: end
  -- There is nothing left to write to.
  if not is_wanted then return { reply, signs_in and now or nil } end
else
  if largest then
    -- paste: fit
  end
  if sets_end or rotates then
    -- paste: check-member
  end
  local leaving, joining
  if changes_index or fields[6] then
    -- paste: index
    leaving, joining = fields[6] and recorded_entries(fields[6]) or {}, new_entries(16, first_removed - 1)
    if changes_index and limit ~= '' then
      local kept = ARGV[4]
      -- paste: limit
      local refusal = refusal_of(joining, id, limit)
      if refusal then return { refusal } end
    end
    local changed = {}
    for i = 16, first_removed - 1, 2 do changed[ARGV[i]] = true end
    for _, entry in ipairs(leaving) do
      if not changed[entry.name] then table.insert(joining, entry) end
    end
    local roomy = rotates and string.match(limit, '^until %d+ (.*)$')
    for _, entry in ipairs(roomy and joining or {}) do
      local is_principal = entry.name == 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME'
      -- Another request has changed the principal since this one loaded the session.
      if is_principal and entry.value ~= roomy then return { 'unplaced', entry.value } end
    end
    if changes_index and joining[1] then
      ARGV[last + 1], ARGV[last + 2] = 'index', recorded_form(joining)
      last = last + 2
    end
  end
  if sets_end and moves then
    if rotates then
      local recorded = redis.pcall('XLEN', events)
      if type(recorded) == 'table' then
        -- paste: unrecorded
      end
    end
    -- paste: change-member
  end
  if rotates then
    local recorded = redis.pcall('XADD', events, '*', 'type', 'id-changed', 'session', new_id, 'at', now, 'previous', id)
    if type(recorded) == 'table' then
      -- paste: unrecorded
    end
    -- paste: signal
  end
  if sets_end then
    -- paste: set-end
  end
  if joining then
    local score = now
    if not signs_in then score = kept_rule == '' and tonumber(fields[7]) or tonumber(fields[8]) or now end
    for _, entry in ipairs(leaving) do redis.call('ZREM', entry.set, id) end
    for _, entry in ipairs(joining) do redis.call('ZADD', entry.set, score, new_id) end
  end
  if changes_index and not joining[1] then redis.call('HDEL', key, 'index') end
  if new_interval then
    ARGV[last + 1], ARGV[last + 2] = 'maxInactiveInterval', ARGV[7]
    last = last + 2
  end
  -- A slow request must not undo a later one.
  if not keeps_idle and (not accessed or accessed < now) then
    ARGV[last + 1], ARGV[last + 2] = 'lastAccessedTime', now
    last = last + 2
  end
end
if new_timeout and absolute_expiry then
  ARGV[last + 1], ARGV[last + 2] = 'absoluteExpiry', absolute_expiry
  last = last + 2
elseif new_timeout and fields[3] then
  redis.call('HDEL', key, 'absoluteExpiry')
end
local data_key = data_keys and data_keys[rotates and not ends and new_id or id]
if data_key then
  ARGV[last + 1], ARGV[last + 2] = 'dataKey', data_key
  last = last + 2
end
if signs_in then
  ARGV[last + 1], ARGV[last + 2] = 'authenticatedAt', now
  last = last + 2
elseif kept_rule == 'none' and reply == 'saved' then
  redis.call('HDEL', key, 'authenticatedAt')
end
for i = 1, stale and #stale or 0, 4000 do
  redis.call('HDEL', key, unpack(stale, i, math.min(i + 3999, #stale)))
end
-- paste: write-fields
for i = first_removed, last_removed, 4000 do
  redis.call('HDEL', key, unpack(ARGV, i, math.min(i + 3999, last_removed)))
end

if rotates and not ends then
  if bucket and (sets_end or is_in == 1) then
    redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. new_id)
    redis.call('SREM', bucket_prefix .. bucket, 'expires:' .. id)
  elseif due then
    redis.call('ZADD', prefix .. 'ends', due, new_id)
    redis.call('ZREM', prefix .. 'ends', id)
  end
  redis.call('RENAME', key, KEYS[6])
  redis.call('RENAME', shadow, KEYS[7])
  redis.call('SET', KEYS[5], mark, 'PX', 60000)
end
return { reply, signs_in and now or nil }
