-- include: server, keys
-- The keys and arguments that all session scripts have in common.
local bucket_list = KEYS[1]
local events = KEYS[2]
local grace = tonumber(ARGV[2])
local retention = tonumber(ARGV[3])

local function session_of(id)
  return { id = id, key = session_key(id), shadow = shadow_key(id) }
end

-- The {key, type, name in an error} of an index entry. The value is that of an attribute, so errors do not name it.
local function index_set(name, value)
  return { index_key(name, value), 'set', index_key(name, '...') }
end

local function record(what, id, now, ...)
  redis.call('XADD', events, '*', 'type', what, 'session', id, 'at', integer(now), ...)
end
