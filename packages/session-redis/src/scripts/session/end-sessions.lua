#!lua flags=allow-oom
--[[
  end-sessions: deletes a batch of the sessions in an index, the earliest sign-ins first, and records a `deleted` event for
  each. What signs in after the first batch has a higher score than the last entry to end, and stays.

  KEYS[1] bucket list, KEYS[2] events stream, KEYS[3] index
  ARGV[1] prefix of the partition's keys, ARGV[2] the trace that causes the change, empty: none
  ARGV[3] how long the session hash is kept after the end, in ms
  ARGV[4] score of the last entry to end; empty: the highest score of the index
  ARGV[5] how many entries to end
  ARGV[6..] ids of the sessions that stay

  Returns the number of sessions that this call ended; the score of the last entry to end, empty when none is left; the
  error of a session that a stray key keeps alive, or empty; and the ids of such sessions
]]
-- include: keys, clock, end-by-id
local partition = { prefix = ARGV[1], bucket_list = KEYS[1], events = KEYS[2], trace = ARGV[2] ~= '' and ARGV[2] or nil }
local index, retention, latest, amount, stays = KEYS[3], ARGV[3], ARGV[4], ARGV[5], {}
for i = 6, #ARGV do stays[ARGV[i]] = true end
local most = amount + #ARGV - 5

local ending = { how = 'deleted', cause = 'revoked', at = now_in_ms(), retention = retention }
if latest == '' then latest = redis.call('ZRANGE', index, 0, 0, 'REV', 'WITHSCORES')[2] or '' end
local found = latest == '' and {} or redis.call('ZRANGE', index, '-inf', latest, 'BYSCORE', 'LIMIT', 0, most)
local ended, problem, left, stray = 0, '', {}, {}
for _, id in ipairs(found) do
  if not stays[id] then
    local has_ended, found_problem = end_by_id(partition, id, ending)
    if has_ended then ended = ended + 1 end
    if found_problem then
      problem = found_problem
      table.insert(stray, id)
    else
      table.insert(left, id)
    end
  end
end
-- Also what is over and not yet claimed, so that the next batch does not find it again.
if left[1] then redis.call('ZREM', index, unpack(left)) end
return { ended, #found == most and latest or '', problem, unpack(stray) }
