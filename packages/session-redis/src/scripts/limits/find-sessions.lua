#!lua flags=allow-oom
--[[
  find-sessions: tells what has become of sessions of a principal.

  KEYS[1] index of principals, for the principal
  KEYS[2] epoch
  ARGV[1] prefix of the partition's keys
  ARGV[2..] ids

  Returns one word for each id
    'live'    a live session, which the index lists
    'over'    the session has ended, or has another id by now, which a ledger has as well
    'absent'  there is no such session, or it is no session of the principal: not yet, or no more; or the epoch ends it
]]
-- include: epoch, is-live
local index, epoch, prefix = KEYS[1], epoch_at(KEYS[2]), ARGV[1]

local function find(id)
  local key, shadow = prefix .. 'sessions:' .. id, prefix .. 'sessions:expires:' .. id
  if is_live(key, shadow) then
    local score = redis.call('ZSCORE', index, id)
    return score and not is_ended_by(epoch, score) and 'live' or 'absent'
  end
  -- A shadow key without its session hash is no session.
  local has_ended = redis.call('EXISTS', key, shadow, prefix .. 'sessions:forwarded:' .. id) > 0
  return has_ended and 'over' or 'absent'
end

local words = {}
for i = 2, #ARGV do words[i - 1] = find(ARGV[i]) end
return words
