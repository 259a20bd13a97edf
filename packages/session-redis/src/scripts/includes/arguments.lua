-- Reads the lists at the end of ARGV: each is its length, followed by that many groups of values.

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

-- Enters a session that was located where `changes`, a list of {index, value}, says; an empty value takes it out of that
-- index.
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
