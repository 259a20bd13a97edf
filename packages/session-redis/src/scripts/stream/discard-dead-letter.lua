#!lua flags=allow-oom
--[[
  discard-dead-letter: deletes a dead letter.

  KEYS[1] dead letters
  ARGV[1] position of the dead letter

  Returns
    'discarded'
    'gone'  the dead letter does not exist any more
]]
local dead = KEYS[1]
-- paste: server, dead-letters
local problem = wrong_type({ { dead, 'stream' }, { dead_index, 'zset' }, { dead_sizes, 'hash' } })
if problem then return problem end
local letter = redis.call('XRANGE', dead, ARGV[1], ARGV[1])[1]
if not letter then return 'gone' end
remove_letter(letter)
return 'discarded'
