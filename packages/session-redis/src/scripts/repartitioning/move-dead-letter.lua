#!lua flags=allow-oom
--[[
  move-dead-letter: moves a dead letter to the partition that its session has in the new layout.

  KEYS[1] dead letters of the old partition
  KEYS[2] dead letters of the new one
  ARGV[1] position of the dead letter
  ARGV[2] most bytes of the dead letters of a partition

  Returns
    'moved'
    'gone'   the dead letter does not exist any more
]]
-- include: server
local function letters_in(dead)
  -- include: dead-letters
  local problem = wrong_type({
    { dead, 'stream' }, { dead_index, 'zset' }, { dead_sizes, 'hash' }, { lost_letters, 'hash' },
    { unreported_letters, 'hash' },
  })
  return { problem = problem, add = add_letter, remove = remove_letter }
end
local old, new = letters_in(KEYS[1]), letters_in(KEYS[2])
local problem = old.problem or new.problem
if problem then return problem end
local letter = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not letter then return 'gone' end
new.add(letter[2], tonumber(ARGV[2]))
old.remove(letter)
return 'moved'
