#!lua flags=allow-oom
--[[
  verify-letters: looks whether the records of dead letters have each of some letters, with its bytes.

  KEYS[1] dead letters
  ARGV[1] 1: mend what is wrong
  ARGV[2] look at those behind this position
  ARGV[3] at how many

  Returns the position of the last one, empty when there was none, and then each position that is wrong, and the rule of it, in turn
]]
-- include: dead-letters, findings, keys
local letters, found, after, most = dead_letters(KEYS[1]), findings(ARGV[1]), ARGV[2], ARGV[3]

found[1] = ''
for _, entry in ipairs(read('XRANGE', letters.stream, '(' .. after, '+', 'COUNT', most) or {}) do
  local kind, bytes = kind_of(entry[2]), bytes_of(entry[2])
  local member = index_member(kind, entry[1], bytes)
  if read('ZSCORE', letters.index, member) == false then
    note(found, entry[1], 'letter-unrecorded', function()
      redis.call('ZADD', letters.index, 0, member)
      redis.call('HINCRBY', letters.sizes, kind, bytes)
    end)
  end
  found[1] = entry[1]
end
return found
