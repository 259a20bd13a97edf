#!lua flags=allow-oom
--[[
  find-sessions: tells what has become of sessions of a principal. Follows forwarding marks.

  KEYS[1] index of principals, for the principal
  KEYS[2] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2..] ids

  Returns one word for each id
    'live'    a live session, which the index lists
    'over'    the session has ended
    'absent'  there is no such session, or it is no session of the principal: not yet, or no more; or the epoch ends it
]]
local epoch, words = tonumber(redis.call('HGET', KEYS[2], 'at') or 0), {}
for i = 2, #ARGV do
  local id, word = ARGV[i], 'absent'
  -- A chain of marks is short: each lives for 60 s. The limit stops a planted circle.
  for _ = 1, 15 do
    if redis.call('EXISTS', ARGV[1] .. 'sessions:expires:' .. id) == 1 then
      local score = redis.call('ZSCORE', KEYS[1], id)
      if score and tonumber(score) > epoch then word = 'live' end
      break
    end
    local mark = redis.call('GET', ARGV[1] .. 'sessions:moved:' .. id)
    if not mark then
      if redis.call('EXISTS', ARGV[1] .. 'sessions:' .. id) == 1 then word = 'over' end
      break
    end
    id, word = string.match(mark, '^%S*'), 'over'
  end
  words[i - 1] = word
end
return words
