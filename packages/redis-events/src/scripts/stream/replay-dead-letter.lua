#!lua
--[[
  replay-dead-letter: moves a dead letter back into the events stream, with the session's data in it. Only its group
  handles it, with the handlers that have not succeeded yet.

  KEYS[1] events stream
  KEYS[2] dead letters
  ARGV[1] position of the dead letter

  Returns
    'replayed'
    'gone'      the dead letter does not exist any more
    'orphaned'  its group was removed, so nobody would handle it
    'foreign'   it is no event, but a stray key or member that stood in the place of a session
]]
-- include: dead-letters, groups, signal, types
-- What the failure added to the fields of the entry.
local OF_FAILURE = { entry = true, reason = true, attempts = true, handler = true, dataSize = true, buried = true }
local events, letters, position = KEYS[1], dead_letters(KEYS[2]), ARGV[1]
assert_types({ { events, 'stream' }, { letters.stream, 'stream' }, { letters.index, 'zset' }, { letters.sizes, 'hash' } })
local letter = redis.call('XRANGE', letters.stream, position, position)[1]
if not letter then return 'gone' end
local group = named(letter[2]).group
if not group then return 'foreign' end
if not groups_of(events)[group] then return 'orphaned' end

local fields = {}
for i = 1, #letter[2], 2 do
  if not OF_FAILURE[letter[2][i]] then
    table.insert(fields, letter[2][i])
    table.insert(fields, letter[2][i + 1])
  end
end
redis.call('XADD', events, '*', unpack(fields))
signal(events, 'events')
remove_letter(letters, letter)
return 'replayed'
