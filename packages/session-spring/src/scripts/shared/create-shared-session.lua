#!lua
--[[
  create-shared-session: stores a new session where Spring's indexed repository has its sessions, and tells Spring of it.

  KEYS[1] events stream
  KEYS[2] session hash
  KEYS[3..] forwarding marks: of the id, and of the ids that the client presented
  ARGV[1] what Spring's keys begin with
  ARGV[2] what ours begin with
  ARGV[3] the trace that causes it, as a W3C traceparent; empty: none
  ARGV[4] id
  ARGV[5] maxInactiveInterval in s
  ARGV[6] the name of the principal; empty: none
  ARGV[7] 1: somebody signs in
  ARGV[8] channel of Spring's created events
  ARGV[9] how the message there begins
  ARGV[10] the principal as the revocation mark has it; empty: none
  ARGV[11] how long ago the request began that makes the session theirs, in ms; empty: no matter when
  ARGV[12..] field and text of each attribute

  Returns
    {'created', creationTime}
    {'collision'}  there is or was a session of the id
    {'gone'}       the session of a presented id was rotated, and goes on
    {'revoked'}    every session of the principal was ended after the request began
]]
-- include: clock, arguments, shared-events, shared-place, shared-index, hash-fields, goes-on, revoked
local place = { prefix = ARGV[1], own = ARGV[2], events = KEYS[1], trace = ARGV[3] ~= '' and ARGV[3] or nil }
local id, interval, principal, signs_in, channel, message = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7] == '1', ARGV[8], ARGV[9]
local now, fields, key, mark = now_in_ms(), part_of(ARGV, 12, #ARGV), KEYS[2], KEYS[3]

for i = 4, #KEYS do
  if goes_on(place.own, redis.call('GET', KEYS[i])) then return { 'gone' } end
end
if redis.call('EXISTS', key, mark, place.own .. 'sessions:ended:' .. id) > 0 then return { 'collision' } end
if is_revoked(place.own, ARGV[10], tonumber(ARGV[11]), now) then return { 'revoked' } end
read_typed('stream', 'XLEN', place.events)
read_typed('zset', 'ZCARD', place.own .. 'ends')

local session = {
  id = id, key = key, shadow = place.prefix .. 'sessions:expires:' .. id, created_at = now, accessed = now, interval = interval,
  principal = principal,
}
local told = { message .. '"creationTime":' .. digits(now), '"lastAccessedTime":' .. digits(now), '"maxInactiveInterval":' .. interval }
for i = 1, #fields, 2 do table.insert(told, cjson.encode(fields[i]) .. ':' .. fields[i + 1]) end
for _, text in ipairs({ 'creationTime', digits(now), 'lastAccessedTime', digits(now), 'maxInactiveInterval', interval }) do
  table.insert(fields, text)
end
write_fields(key, fields)
if signs_in then redis.call('SET', place.own .. 'sessions:signed-in:' .. id, digits(now) .. ' ' .. principal) end
take_place(place, session, end_of(session), interval * 1000)
list(place, id, principal)
redis.call('PUBLISH', channel .. id, table.concat(told, ',') .. '}')
record_shared(place, 'created', session, now)
if signs_in then record_shared(place, 'signed-in', session, now) end
return { 'created', digits(now) }
