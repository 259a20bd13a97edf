#!lua
--[[
  save-session: writes the changes of a live session, and renews its idle timeout unless the request keeps it idle.
  Either all of it happens or nothing. A session whose new times are already over ends.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6] session hash of the new id
  KEYS[7] shadow key of the new id
  KEYS[8] forwarding mark of the new id
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id
  ARGV[5] new id; the same as ARGV[4] unless the session is rotated
  ARGV[6] maxInactiveInterval in s; empty: unchanged; 0: end the session
  ARGV[7] absolute timeout in s since the creation; empty: unchanged; negative: none
  ARGV[8] 1: keep the session idle: this is no access, and the idle timeout counts from the last access
  ARGV[9] condition: 'any', 'text' (the attribute ARGV[10] has the text ARGV[11]) or 'none' (there is no such attribute)
  ARGV[10] name of the attribute in the condition
  ARGV[11] text of the attribute in the condition
  ARGV[12..] list of {attribute, text}, list of {removed attribute}, list of {index, value; empty: leave the index}

  Returns
    {'saved'}
    {'forwarded'}        saved, under a later id than the given one
    {'gone'}             there is no live session. Or another request has rotated it, and this save changes more than
                         attributes or its condition is false: a request that was open during a login must not change
                         or read what belongs to the login
    {'collision'}        the new id is taken
    {'conflict', text}   the condition is false; `text` is what the attribute has now, missing without the attribute
]]
-- include: store, expiration, session, arguments
local id, new_id = ARGV[4], ARGV[5]
local interval = tonumber(ARGV[6])
local absolute_timeout = tonumber(ARGV[7])
local keeps_idle = ARGV[8] == '1'
local expectation, expected_name, expected_text = ARGV[9], ARGV[10], ARGV[11]
local attributes, after_attributes = read_list(12, 2)
local removals, after_removals = read_list(after_attributes, 1)
local indexes = read_list(after_removals, 2)
local rotates = new_id ~= id

local session = live_session({ id = id, key = KEYS[3], shadow = KEYS[4] })
if not session then return { 'gone' } end
local is_forwarded = session.id ~= id
local reply = is_forwarded and 'forwarded' or 'saved'
if is_forwarded then
  -- A rotation that was sent twice finds the forwarding mark that it left itself.
  if rotates and redis.call('GET', KEYS[5]) == new_id then return { 'saved' } end
  if rotates or #indexes > 0 or absolute_timeout or (interval and interval ~= 0) then return { 'gone' } end
end

local now = now_in_ms()
local written = keys_of(session)
for _, entry in ipairs(indexes) do
  if entry[2] ~= '' then table.insert(written, index_set(entry[1], entry[2])) end
end
local problem = wrong_type(shared_keys()) or wrong_type(written)
if problem then return problem end
locate(session)
local times = recorded_times(session)
times.interval = interval or times.interval
if absolute_timeout then times.absolute_expiry = absolute_end(times.creation, absolute_timeout) end
local accessed = keeps_idle and math.min(times.accessed or now, now) or now
local sets_end = not keeps_idle or interval or absolute_timeout
local new_end = sets_end and end_since(accessed, times.interval, times.absolute_expiry)

if expectation ~= 'any' then
  local current = redis.call('HGET', session.key, 'sessionAttr:' .. expected_name)
  local as_expected = expectation == 'none' and not current or expectation == 'text' and current == expected_text
  -- Also when the text equals the new one: another request may have counted from 1 to 2 as well.
  if not as_expected then
    -- The old token must not read anything any more, so a forwarded save does not learn the text.
    if is_forwarded then return { 'gone' } end
    return { 'conflict', current }
  end
end
if rotates and redis.call('EXISTS', KEYS[6], KEYS[7], KEYS[8]) > 0 then return { 'collision' } end

write_attributes(session, attributes)
for _, removal in ipairs(removals) do redis.call('HDEL', session.key, 'sessionAttr:' .. removal[1]) end
if absolute_timeout then write_absolute_end(session, times.absolute_expiry) end
if new_end and new_end.at <= now then
  local how = 'expired'
  if interval == 0 then how = 'deleted' end
  end_session(session, how, now)
  return { reply }
end
write_indexes(session, indexes)
if interval then redis.call('HSET', session.key, 'maxInactiveInterval', ARGV[6]) end
if not keeps_idle then renew(session, new_end, now)
elseif sets_end then set_end(session, new_end, now) end

if rotates then
  local target = { id = new_id, key = KEYS[6], shadow = KEYS[7] }
  for _, entry in ipairs(session.entries) do
    redis.call('SREM', index_key(entry[1], entry[2]), session.id)
    redis.call('SADD', index_key(entry[1], entry[2]), target.id)
  end
  local bucket = session.bucket
  leave_bucket(session)
  redis.call('RENAME', session.key, target.key)
  redis.call('RENAME', session.shadow, target.shadow)
  if bucket then join_bucket(target, bucket) end
  redis.call('SET', KEYS[5], target.id, 'PX', 60000)
  record('id-changed', target.id, now, 'previous', session.id)
end
return { reply }
