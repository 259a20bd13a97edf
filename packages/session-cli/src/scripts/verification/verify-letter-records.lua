#!lua flags=allow-oom
--[[
  verify-letter-records: looks whether records of dead letters are those of letters, and whether their bytes add up.

  KEYS[1] dead letters
  ARGV[1] 1: mend what is wrong
  ARGV[2] of a partition with more records, the bytes are not added up
  ARGV[3..] members of the index

  Returns each member or kind that is wrong, and the rule that it breaks, in turn
]]
-- include: dead-letters, findings, keys
local letters, found, most = dead_letters(KEYS[1]), findings(ARGV[1]), tonumber(ARGV[2])

local function parts_of(member)
  local kind, ms, sequence, bytes = string.match(member, '^(.*\n.*)\n(%d+)-0*(%d+)\n(%d+)$')
  return kind, ms and ms .. '-' .. sequence, bytes
end

local function verify_record(member)
  local kind, position, bytes = parts_of(member)
  if not read('ZSCORE', letters.index, member) then return end
  if kind and #(read('XRANGE', letters.stream, position, position) or {}) > 0 then return end
  note(found, member, 'letter-record-without-letter', function()
    if kind then forget_letter(letters, kind, position, bytes) else redis.call('ZREM', letters.index, member) end
  end)
end

-- The bytes of each kind, out of its records.
local function sum_up()
  local sums = {}
  for _, member in ipairs(redis.call('ZRANGE', letters.index, 0, -1)) do
    local kind, _, bytes = parts_of(member)
    if kind then sums[kind] = (sums[kind] or 0) + tonumber(bytes) end
  end
  return sums
end

local function verify_bytes()
  local sums, sizes = sum_up(), sizes_of(letters)
  for kind, bytes in pairs(sizes) do
    if not sums[kind] then sums[kind] = 0 end
    if sums[kind] == bytes then sums[kind] = nil end
  end
  for kind, bytes in pairs(sums) do
    note(found, kind, 'letter-bytes', function()
      if bytes > 0 then redis.call('HSET', letters.sizes, kind, bytes) else redis.call('HDEL', letters.sizes, kind) end
    end)
  end
end

for i = 3, #ARGV do verify_record(ARGV[i]) end
local records = read('ZCARD', letters.index)
if #ARGV == 2 and records and records <= most and read('HLEN', letters.sizes) then verify_bytes() end
return found
