-- The score of an index entry for who signs in now: later than all others, also within a millisecond, or after the
-- clock was set back. Two neighbouring numbers of that size are a 4096th of a millisecond apart.
local function score_after_all(set, now)
  local latest = redis.call('ZRANGE', set, 0, 0, 'REV', 'WITHSCORES')[2]
  return latest and math.max(now, latest + 0.001) or now
end
