#!lua flags=allow-oom
--[[
  trim-dead-letters: removes dead letters that are too old, and then the oldest of the largest kind while all take too many
  bytes. Tells once which ones went unseen, also those that made room for a new one.

  KEYS[1] dead letters
  ARGV[1] for how many ms a dead letter is kept
  ARGV[2] most bytes of the partition's dead letters
  ARGV[3] at most how many to remove

  Returns
    {'done', lost}  nothing is left to remove now; `lost` has group and count in turn: letters that were removed since the
                    last call. Stray keys and members have an empty group
    {'more', lost}  the limit was reached
]]
-- include: clock, dead-letters, digits, types
local letters, oldest = dead_letters(KEYS[1]), digits(now_in_ms() - ARGV[1])
local most_bytes, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
assert_types({ { letters.stream, 'stream' }, unpack(records_of(letters)) })

local removed = 0
for _, letter in ipairs(redis.call('XRANGE', letters.stream, '-', oldest, 'COUNT', limit)) do
  remove_letter(letters, letter)
  count_lost(letters, kind_of(letter[2]))
  removed = removed + 1
end
removed = removed + trim_letters(letters, most_bytes, limit - removed)
local lost = redis.call('HGETALL', letters.unreported)
redis.call('DEL', letters.unreported)
return { removed == limit and 'more' or 'done', lost }
