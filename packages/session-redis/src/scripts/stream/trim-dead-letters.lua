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
local dead = KEYS[1]
-- paste: server, dead-letters
local problem = wrong_type({
  { dead, 'stream' }, { dead_index, 'zset' }, { dead_sizes, 'hash' }, { lost_letters, 'hash' },
  { unreported_letters, 'hash' },
})
if problem then return problem end
local limit, removed = tonumber(ARGV[3]), 0
for _, letter in ipairs(redis.call('XRANGE', dead, '-', integer(now_in_ms() - ARGV[1]), 'COUNT', limit)) do
  remove_letter(letter)
  count_lost(kind_of(letter[2]))
  removed = removed + 1
end
removed = removed + make_room(tonumber(ARGV[2]), limit - removed)
local lost = redis.call('HGETALL', unreported_letters)
redis.call('DEL', unreported_letters)
return { removed == limit and 'more' or 'done', lost }
