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
local dead = KEYS[2]
-- paste: server, stream, dead-letters
local problem = wrong_type({ { events, 'stream' }, { dead, 'stream' }, { dead_index, 'zset' }, { dead_sizes, 'hash' } })
if problem then return problem end
local letter = redis.call('XRANGE', dead, ARGV[1], ARGV[1])[1]
if not letter then return 'gone' end
local group = named(letter[2]).group
if not group then return 'foreign' end
if not groups_of_stream()[group] then return 'orphaned' end

-- What the failure added is left out.
local of_failure = { entry = true, reason = true, attempts = true, handler = true, dataSize = true }
local fields = {}
for i = 1, #letter[2], 2 do
  if not of_failure[letter[2][i]] then
    table.insert(fields, letter[2][i])
    table.insert(fields, letter[2][i + 1])
  end
end
redis.call('XADD', events, '*', unpack(fields))
-- paste: signal
remove_letter(letter)
return 'replayed'
