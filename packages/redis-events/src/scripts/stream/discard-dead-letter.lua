#!lua flags=allow-oom
--[[
  discard-dead-letter: deletes a dead letter.

  KEYS[1] dead letters
  ARGV[1] position of the dead letter

  Returns
    'discarded'
    'gone'  the dead letter does not exist any more
]]
-- include: dead-letters, types
local letters, position = dead_letters(KEYS[1]), ARGV[1]
assert_types({ { letters.stream, 'stream' }, { letters.index, 'zset' }, { letters.sizes, 'hash' } })
local letter = redis.call('XRANGE', letters.stream, position, position)[1]
if not letter then return 'gone' end
remove_letter(letters, letter)
return 'discarded'
