#!lua flags=allow-oom
--[[
  acknowledge-event: acknowledges an entry whose handlers have all succeeded, and forgets its failures.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  ARGV[1] group
  ARGV[2] position

  Returns
    'acknowledged'
]]
-- include: pending
local problem = wrong_type({ { KEYS[1], 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' } })
if problem then return problem end
finish(KEYS[1], ARGV[1], KEYS[2], KEYS[3], ARGV[2])
return 'acknowledged'
