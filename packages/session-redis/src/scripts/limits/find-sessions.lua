#!lua flags=allow-oom
--[[
  find-sessions: tells what has become of sessions of a principal. Follows forwarding marks.

  KEYS[1] index of principals, for the principal
  KEYS[2] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2..] ids

  Returns one word for each id
    'live'    a live session, which the index lists
    'moved'   the same, under another id by now
    'over'    the session has ended
    'absent'  there is no such session, or it is no session of the principal: not yet, or no more; or the epoch ends it
]]
local epoch = tonumber(redis.call('HGET', KEYS[2], 'at') or 0)

local function find(first)
  local id = first
  -- A chain of marks is short: each lives for 60 s. The limit stops a planted circle.
  for _ = 1, 15 do
    if redis.call('EXISTS', ARGV[1] .. 'sessions:expires:' .. id) == 1 then
      local score = redis.call('ZSCORE', KEYS[1], id)
      if score and tonumber(score) > epoch then return id == first and 'live' or 'moved' end
      return id == first and 'absent' or 'over'
    end
    local mark = redis.call('GET', ARGV[1] .. 'sessions:moved:' .. id)
    if not mark then
      local has_ended = id ~= first or redis.call('EXISTS', ARGV[1] .. 'sessions:' .. id) == 1
      return has_ended and 'over' or 'absent'
    end
    id = string.match(mark, '^%S*')
  end
  return 'over'
end

local words = {}
for i = 2, #ARGV do words[i - 1] = find(ARGV[i]) end
return words
