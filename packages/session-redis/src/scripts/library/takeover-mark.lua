-- Leaves a takeover mark, for so many ms; -1: for ever.
local function leave_takeover_mark(key, lives_for)
  if tonumber(lives_for) < 0 then return redis.call('SET', key, '') end
  redis.call('SET', key, '', 'PX', lives_for)
end
