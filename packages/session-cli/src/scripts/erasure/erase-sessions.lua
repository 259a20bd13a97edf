#!lua flags=allow-oom
--[[
  erase-sessions: ends those of some sessions that are of one principal, and removes their session hashes at once.

  KEYS[1] bucket list
  KEYS[2] events stream
  ARGV[1] 1: erase; else only look
  ARGV[2] prefix of the partition's keys
  ARGV[3] hash of the principal in the index of principals
  ARGV[4] the principal as a JSON string: each serializer has it in the text of the attribute
  ARGV[5..] ids

  Returns the id of each session of the principal, and a word, in turn
    'live'   it was alive. Its end is recorded, without its data
    'ended'  it had ended
]]
-- include: index, clock, end-by-id
local erases, principal, text = ARGV[1] == '1', ARGV[3], ARGV[4]
local partition, reply = { prefix = ARGV[2], bucket_list = KEYS[1], events = KEYS[2] }, {}
local ending = { how = 'deleted', cause = 'revoked', at = now_in_ms(), retention = 1 }

-- Whether an attribute has the name as a text of its own. The name of another principal may end with the same
-- characters, behind a quotation mark, which has a backslash before it.
local function has_name(attribute)
  local at = string.find(attribute, text, 1, true)
  while at and string.sub(attribute, at - 1, at - 1) == '\\' do at = string.find(attribute, text, at + 1, true) end
  return at ~= nil
end

local function is_theirs(entries, attribute)
  for _, entry in ipairs(entries) do
    if entry.name == PRINCIPAL and entry.value == principal then return true end
  end
  return attribute and has_name(attribute)
end

local function erase(id, key, entries)
  end_by_id(partition, id, ending)
  -- Of one whose end nobody has recorded, the sweep of its member does.
  for _, entry in ipairs(entries) do redis.call('ZREM', entry.set, id) end
  redis.call('UNLINK', key)
end

for i = 5, #ARGV do
  local id, key = ARGV[i], partition.prefix .. 'sessions:' .. ARGV[i]
  local fields = read('HMGET', key, 'ended', 'index', 'sessionAttr:nest-session.principal') or {}
  local entries = fields[2] and recorded_entries(partition.prefix, fields[2]) or {}
  if is_theirs(entries, fields[3]) then
    local is_live = not fields[1] and redis.call('EXISTS', partition.prefix .. 'sessions:expires:' .. id) == 1
    reply[#reply + 1], reply[#reply + 2] = id, is_live and 'live' or 'ended'
    if erases then erase(id, key, entries) end
  end
end
return reply
