#!lua flags=allow-oom
--[[
  trim-dead-letters: removes dead letters that are too old, and then the oldest of the largest kind while all take too many
  bytes. Positions ahead of the clock, which was set back, have their time in the letter. Tells once which ones went unseen, also those that made room for a new one.

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
local letters, now, retention = dead_letters(KEYS[1]), now_in_ms(), tonumber(ARGV[1])
local most_bytes, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
assert_types({ { letters.stream, 'stream' }, unpack(records_of(letters)) })

local removed = 0
local function remove_old(letter)
  remove_letter(letters, letter)
  count_lost(letters, kind_of(letter[2]))
  removed = removed + 1
end

-- One without the time, or with a later one, came while the clock was ahead: it begins anew.
local function begin_anew(letter)
  remove_letter(letters, letter)
  local fields = {}
  for i = 1, #letter[2], 2 do
    if letter[2][i] ~= 'buried' then fields[#fields + 1], fields[#fields + 2] = letter[2][i], letter[2][i + 1] end
  end
  add_letter(letters, fields, most_bytes)
end

local oldest = redis.call('XRANGE', letters.stream, '-', digits(now - retention), 'COUNT', limit)
for _, letter in ipairs(oldest) do remove_old(letter) end
for _, letter in ipairs(redis.call('XRANGE', letters.stream, digits(now + 1000), '+', 'COUNT', limit)) do
  local at = tonumber(value_in(letter[2], 'buried')) or math.huge
  if at > now then begin_anew(letter) elseif at <= now - retention then remove_old(letter) end
end
removed = math.min(removed, limit)
removed = removed + trim_letters(letters, most_bytes, limit - removed)
local lost = redis.call('HGETALL', letters.unreported)
redis.call('DEL', letters.unreported)
return { removed == limit and 'more' or 'done', lost }
