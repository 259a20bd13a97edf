-- include: fields
-- The dead letters of a partition. When they take too many bytes, the oldest goes of the kind that takes most: a kind
-- is a group and the first handler that failed there; stray keys and members are one as well.

local function dead_letters(dead)
  return {
    stream = dead, index = dead .. ':index', sizes = dead .. ':sizes',
    lost = dead .. ':lost', unreported = dead .. ':unreported',
  }
end

local function records_of(letters)
  return {
    { letters.index, 'zset' }, { letters.sizes, 'hash' }, { letters.lost, 'hash' }, { letters.unreported, 'hash' },
  }
end

local function kind_of(fields)
  return value_in(fields, 'group') .. '\n' .. value_in(fields, 'handler')
end

local function bytes_of(fields)
  -- About what a stream takes for an entry besides its texts.
  local bytes = 100
  for _, text in ipairs(fields) do bytes = bytes + #tostring(text) end
  return bytes
end

-- The index is in the order of its texts: the letters of a kind follow one another, the oldest first.
local function index_member(kind, position, bytes)
  local ms, sequence = string.match(position, '^(%d+)-(%d+)$')
  return kind .. '\n' .. ms .. '-' .. string.format('%06d', sequence) .. '\n' .. bytes
end

local function forget_letter(letters, kind, position, bytes)
  if redis.call('ZREM', letters.index, index_member(kind, position, bytes)) == 0 then return end
  if redis.call('HINCRBY', letters.sizes, kind, -bytes) <= 0 then redis.call('HDEL', letters.sizes, kind) end
end

local function remove_letter(letters, entry)
  forget_letter(letters, kind_of(entry[2]), entry[1], bytes_of(entry[2]))
  redis.call('XDEL', letters.stream, entry[1])
end

-- Counts a letter that went although nobody had dealt with it.
local function count_lost(letters, kind)
  local group = string.match(kind, '^(.*)\n')
  redis.call('HINCRBY', letters.lost, group, 1)
  redis.call('HINCRBY', letters.unreported, group, 1)
end

local function sizes_of(letters)
  local sizes, total = {}, 0
  local reply = redis.call('HGETALL', letters.sizes)
  for i = 1, #reply, 2 do
    sizes[reply[i]] = tonumber(reply[i + 1])
    total = total + sizes[reply[i]]
  end
  return sizes, total
end

local function largest_kind(sizes)
  local largest
  for kind, bytes in pairs(sizes) do
    if not largest or bytes > sizes[largest] then largest = kind end
  end
  return largest
end

local function oldest_of(letters, kind)
  local first, behind = '[' .. kind .. '\n', '(' .. kind .. '\n\255'
  local oldest = redis.call('ZRANGE', letters.index, first, behind, 'BYLEX', 'LIMIT', 0, 1)[1]
  local ms, sequence, bytes = string.match(oldest or '', '\n(%d+)-0*(%d+)\n(%d+)$')
  if not ms then return nil end
  return ms .. '-' .. sequence, bytes
end

-- Removes letters until all take `most` bytes, at most `limit` and not the one at `newest`. Returns how many.
local function trim_letters(letters, most, limit, newest)
  local sizes, total = sizes_of(letters)
  local removed = 0
  while total > most and removed < limit do
    local kind = largest_kind(sizes)
    local position, bytes = oldest_of(letters, kind)
    if position then
      if position == newest then break end
      forget_letter(letters, kind, position, bytes)
      if redis.call('XDEL', letters.stream, position) == 1 then count_lost(letters, kind) end
    else
      -- Somebody has deleted the index.
      bytes = sizes[kind]
      redis.call('HDEL', letters.sizes, kind)
    end
    sizes[kind], total, removed = sizes[kind] - bytes, total - bytes, removed + 1
  end
  return removed
end

-- Adds the entry of a letter. Positions never go back: ahead of the clock, the letter has the time in itself.
local function add_entry(stream, fields)
  local position, seconds = redis.call('XADD', stream, '*', unpack(fields)), redis.call('TIME')[1]
  if tonumber(string.match(position, '^%d+')) < (seconds + 1) * 1000 then return position end
  redis.call('XDEL', stream, position)
  fields[#fields + 1], fields[#fields + 2] = 'buried', seconds .. '000'
  return redis.call('XADD', stream, '*', unpack(fields))
end

local function add_letter(letters, fields, most)
  local position = add_entry(letters.stream, fields)
  local kind, bytes = kind_of(fields), bytes_of(fields)
  redis.call('ZADD', letters.index, 0, index_member(kind, position, bytes))
  redis.call('HINCRBY', letters.sizes, kind, bytes)
  trim_letters(letters, most, 100, position)
end
