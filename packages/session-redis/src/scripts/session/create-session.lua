#!lua
--[[
  create-session: stores a new session, and records its `created` event.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] session hash
  KEYS[4] shadow key
  KEYS[5] forwarding mark of the id
  KEYS[6..] forwarding marks of the ids that the request presented
  ARGV[1] prefix of the partition's keys
  ARGV[2] grace in ms
  ARGV[3] retention in ms
  ARGV[4] id
  ARGV[5] maxInactiveInterval in s
  ARGV[6] absolute timeout in s; negative: none
  ARGV[7..] list of {attribute, text}, list of {index, value}

  Returns
    {'created', creation time in epoch ms}
    {'collision'}  the id is taken
    {'gone'}       the session of a presented id has just been rotated. The request still has the old token, and the
                   cookie of a new session would replace the cookie of the login
]]
-- include: store, expiration, session, arguments
local session = { id = ARGV[4], key = KEYS[3], shadow = KEYS[4], entries = {} }
local interval = tonumber(ARGV[5])
local attributes, position = read_list(7, 2)
local indexes = read_list(position, 2)

for i = 6, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then return { 'gone' } end
end
if redis.call('EXISTS', session.key, session.shadow, KEYS[5]) > 0 then return { 'collision' } end

local now = now_in_ms()
local absolute_expiry = absolute_end(now, tonumber(ARGV[6]))
local new_end = end_since(now, interval, absolute_expiry)
local written = {}
for _, entry in ipairs(indexes) do table.insert(written, index_set(entry[1], entry[2])) end
local problem = wrong_type(shared_keys()) or wrong_type(written)
if problem then return problem end

redis.call('HSET', session.key,
  'creationTime', integer(now), 'lastAccessedTime', integer(now), 'maxInactiveInterval', ARGV[5])
write_absolute_end(session, absolute_expiry)
write_attributes(session, attributes)
redis.call('SET', session.shadow, '')
set_end(session, new_end, now)
write_indexes(session, indexes)
record('created', session.id, now)
return { 'created', integer(now) }
