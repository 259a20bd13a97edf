-- The dead letters `dead` of a partition. Their bytes have a limit, and every kind has its share: when there are too many,
-- the oldest of the kind that takes most room goes. A kind is a group and the first handler that failed there; stray keys
-- and members are one as well.
local dead_index, dead_sizes = dead .. ':index', dead .. ':sizes'
local lost_letters, unreported_letters = dead .. ':lost', dead .. ':unreported'

local function field_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return ''
end

local function kind_of(fields)
  return field_of(fields, 'group') .. '\n' .. field_of(fields, 'handler')
end

local function bytes_of(fields)
  -- About what a stream takes for an entry besides its texts.
  local bytes = 100
  for _, text in ipairs(fields) do bytes = bytes + #tostring(text) end
  return bytes
end

-- The index is in the order of its texts: the letters of a kind follow one another, the oldest first.
local function member_of(kind, position, bytes)
  local ms, sequence = string.match(position, '^(%d+)-(%d+)$')
  return kind .. '\n' .. ms .. '-' .. string.format('%06d', sequence) .. '\n' .. bytes
end

-- Removes a letter from the records.
local function forget(kind, position, bytes)
  if redis.call('ZREM', dead_index, member_of(kind, position, bytes)) == 0 then return end
  if redis.call('HINCRBY', dead_sizes, kind, -bytes) <= 0 then redis.call('HDEL', dead_sizes, kind) end
end

-- Removes a letter that somebody has dealt with.
local function remove_letter(entry)
  forget(kind_of(entry[2]), entry[1], bytes_of(entry[2]))
  redis.call('XDEL', dead, entry[1])
end

-- Counts a letter that went although nobody had dealt with it.
local function count_lost(kind)
  local group = string.match(kind, '^(.*)\n')
  redis.call('HINCRBY', lost_letters, group, 1)
  redis.call('HINCRBY', unreported_letters, group, 1)
end

-- Removes letters until all take `most` bytes, at most `limit` and not the one at `newest`. Returns how many.
local function make_room(most, limit, newest)
  local sizes, total, removed = {}, 0, 0
  local reply = redis.call('HGETALL', dead_sizes)
  for i = 1, #reply, 2 do
    sizes[reply[i]] = tonumber(reply[i + 1])
    total = total + sizes[reply[i]]
  end
  while total > most and removed < limit do
    local kind
    for each, bytes in pairs(sizes) do
      if not kind or bytes > sizes[kind] then kind = each end
    end
    local first, behind = '[' .. kind .. '\n', '(' .. kind .. '\n\255'
    local oldest = redis.call('ZRANGE', dead_index, first, behind, 'BYLEX', 'LIMIT', 0, 1)[1]
    local ms, sequence, bytes = string.match(oldest or '', '\n(%d+)-0*(%d+)\n(%d+)$')
    if ms then
      local position = ms .. '-' .. sequence
      if position == newest then break end
      forget(kind, position, bytes)
      if redis.call('XDEL', dead, position) == 1 then count_lost(kind) end
    else
      -- Somebody has deleted the index.
      bytes = sizes[kind]
      redis.call('HDEL', dead_sizes, kind)
    end
    sizes[kind], total, removed = sizes[kind] - bytes, total - bytes, removed + 1
  end
  return removed
end

local function add_letter(fields, most)
  local kind, bytes = kind_of(fields), bytes_of(fields)
  local position = redis.call('XADD', dead, '*', unpack(fields))
  redis.call('ZADD', dead_index, 0, member_of(kind, position, bytes))
  redis.call('HINCRBY', dead_sizes, kind, bytes)
  make_room(most, 100, position)
end
