#!lua flags=allow-oom
--[[
  cancel-deadline: takes a waiting deadline back. No event of it is ever recorded then.

  KEYS[1] sorted set of what waits of the name
  KEYS[2] hash of the deadline
  ARGV[1] member of the deadline in the sorted set

  Returns
    'cancelled'
    'fired'
    'none'
]]
-- include: deadline
local due, hash, member = KEYS[1], KEYS[2], ARGV[1]
local known, has_fired = waiting_at(hash, member)
if not known then return has_fired and 'fired' or 'none' end
-- Without its hash, a member of the sorted set is nothing that fires. A stray key in the place of that has none.
read('ZREM', due, member)
redis.call('UNLINK', hash)
return 'cancelled'
