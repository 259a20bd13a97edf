#!lua flags=allow-oom
--[[
  end-sessions: deletes a batch of the sessions in an index, the earliest sign-ins first, and records a `deleted` event for
  each. What signs in after the first batch has a higher score than the last entry to end, and stays.

  KEYS[1] bucket list
  KEYS[2] events stream
  KEYS[3] index
  ARGV[1] prefix of the partition's keys
  ARGV[2] how long the session hash is kept after the end, in ms
  ARGV[3] score of the last entry to end; empty: the highest score of the index
  ARGV[4] how many entries to end
  ARGV[5..] ids of the sessions that stay

  Returns the number of sessions that this call ended; the score of the last entry to end, empty when there is none left;
  the error of a session that a stray key keeps alive, empty when there is none; and the ids of such sessions
]]
-- paste: keys, clock
local bucket_list, events, kept, is_wanted = KEYS[1], KEYS[2], ARGV[2], nil
-- paste: end-session
local latest = ARGV[3]
if latest == '' then latest = redis.call('ZRANGE', KEYS[3], 0, 0, 'REV', 'WITHSCORES')[2] or '' end
local stays = {}
for i = 5, #ARGV do stays[ARGV[i]] = true end
local most = ARGV[4] + #ARGV - 4
local found = latest == '' and {} or redis.call('ZRANGE', KEYS[3], '-inf', latest, 'BYSCORE', 'LIMIT', 0, most)
local ended, problem, left, foreign = 0, '', {}, {}
for _, id in ipairs(found) do
  if not stays[id] then
    local has_ended, found_problem = end_session(id)
    if has_ended then ended = ended + 1 end
    if found_problem then
      problem = found_problem
      table.insert(foreign, id)
    else
      table.insert(left, id)
    end
  end
end
-- Also what is over and not yet claimed, so that the next batch does not find it again.
if left[1] then redis.call('ZREM', KEYS[3], unpack(left)) end
return { ended, #found == most and latest or '', problem, unpack(foreign) }
