-- include: server
-- What all session scripts are given, and the names of the keys that only Redis can know. All names begin with the
-- prefix, which carries the partition's hash tag.
local bucket_list = KEYS[1]
local events = KEYS[2]
local prefix = ARGV[1]
local grace = tonumber(ARGV[2])
local retention = tonumber(ARGV[3])

local function session_of(id)
  return { id = id, key = prefix .. 'sessions:' .. id, shadow = prefix .. 'sessions:expires:' .. id }
end

local function moved_key(id)
  return prefix .. 'sessions:moved:' .. id
end

local function bucket_key(minute)
  return prefix .. 'expirations:' .. minute
end

local function index_key(name, value)
  return prefix .. 'index:' .. name .. ':' .. value
end

-- What an index writes. The value, which is that of an attribute, is not shown when something is wrong with the key.
local function index_set(name, value)
  return { index_key(name, value), 'set', index_key(name, '...') }
end

local function record(what, id, now, ...)
  redis.call('XADD', events, '*', 'type', what, 'session', id, 'at', integer(now), ...)
end
