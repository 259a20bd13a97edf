-- Reads the lists at the end of ARGV. Each is its length, followed by as many groups of `size` values.
local function read_list(position, size)
  local list = {}
  local count = tonumber(ARGV[position])
  position = position + 1
  for _ = 1, count do
    local group = {}
    for i = 1, size do group[i] = ARGV[position + i - 1] end
    table.insert(list, group)
    position = position + size
  end
  return list, position
end

local function write_attributes(session, attributes)
  for _, attribute in ipairs(attributes) do
    redis.call('HSET', session.key, 'sessionAttr:' .. attribute[1], attribute[2])
  end
end

-- Moves a located session to the index entries in `changes`, a list of {index, value}. With an empty value it leaves
-- the index.
local function write_indexes(session, changes)
  if #changes == 0 then return end
  local changed = {}
  for _, change in ipairs(changes) do changed[change[1]] = true end
  local entries = {}
  for _, entry in ipairs(session.entries) do
    if changed[entry[1]] then redis.call('SREM', index_key(entry[1], entry[2]), session.id)
    else table.insert(entries, entry) end
  end
  for _, change in ipairs(changes) do
    if change[2] ~= '' then
      redis.call('SADD', index_key(change[1], change[2]), session.id)
      table.insert(entries, change)
    end
  end
  session.entries = entries
  if #entries == 0 then redis.call('HDEL', session.key, 'index')
  else redis.call('HSET', session.key, 'index', cjson.encode(cjson.encode(entries))) end
end
