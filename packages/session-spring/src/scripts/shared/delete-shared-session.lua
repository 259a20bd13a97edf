#!lua flags=allow-oom
--[[
  delete-shared-session: deletes a live session as Spring does, and records its `deleted` event. Follows our forwarding marks, but for
  those that lead nowhere.

  KEYS[1] events stream
  KEYS[2] index of Spring that must list the session; none: any session
  ARGV[1] what Spring's keys begin with
  ARGV[2] what ours begin with
  ARGV[3] the trace that causes it, as a W3C traceparent; empty: none
  ARGV[4] id
  ARGV[5] why: a SessionDeletedReason of session-core
  ARGV[6] the principal that the session must have; empty: any
  ARGV[7] 1: its event has no data

  Returns
    {'deleted'}
    {'forwarded'}  deleted, under a later id than the given one
    {'gone', word}  there is no live session, or the index does not list it, or it has another principal. `word`: that of
                   the forwarding mark that leads nowhere, missing without one
]]
-- include: clock, shared-session, shared-end
local place = { prefix = ARGV[1], own = ARGV[2], events = KEYS[1], trace = ARGV[3] ~= '' and ARGV[3] or nil }
place.omits_data = ARGV[7] == '1'
local id, cause, name, index, now = ARGV[4], ARGV[5], ARGV[6], KEYS[2], now_in_ms()

local session, word = live_shared(place, id, now, true)
if not session then return { 'gone', word } end
if index and redis.call('SISMEMBER', index, '"' .. session.id .. '"') == 0 then return { 'gone' } end
-- Spring leaves a session under a former name that it has not loaded itself.
if name ~= '' and session.principal and session.principal ~= name then return { 'gone' } end
await_beginning(place, session, now)
end_shared(place, session, 'deleted', cause, now, index and name or '')
return { session.id == id and 'deleted' or 'forwarded' }
