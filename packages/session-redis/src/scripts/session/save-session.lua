#!lua
--[[
  save-session: writes what changed of a live session, and renews it unless it is to be kept idle. All of it happens, or
  nothing. When the times it is given are over by now, it ends.

  KEYS[1] bucket list
  KEYS[2] events
  KEYS[3] session
  KEYS[4] shadow
  KEYS[5] forwarding mark
  KEYS[6] session under the id it is to have, which may be the same
  KEYS[7] shadow under that id
  KEYS[8] forwarding mark of that id
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id
  ARGV[5] id it is to have, which may be the same
  ARGV[6] maxInactiveInterval in s; empty: unchanged; 0: end the session
  ARGV[7] absolute timeout in s from the creation; empty: unchanged; negative: none
  ARGV[8] 1: keep it idle: no access is recorded, and its times count from the last one
  ARGV[9] what must still be so: 'any', 'text' (the attribute has the text ARGV[11]) or 'none' (there is no such attribute)
  ARGV[10] the name of that attribute
  ARGV[11] its text
  ARGV[12..] list of {attribute, text}, list of {removed attribute}, list of {index, value; empty: in no set}

  Returns
    {'saved'}
    {'forwarded'}        saved, but under a later id than the one given
    {'gone'}             the session has ended, or had its id changed by another request and this is more than a change
                         of attributes, or finds another text than it expects: a request held open across a login must
                         not get at the session after it
    {'collision'}        the new id is taken
    {'conflict', text}   ARGV[9] is not so; the text there is now, missing when there is none
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
  -- A change of id that is sent twice finds its own mark.
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
  -- Also when the text is the one this change would write: another request may have counted from 1 to 2 as well.
  if not as_expected then
    -- The old token is to read nothing any more, so a late request is not told what there is now.
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
