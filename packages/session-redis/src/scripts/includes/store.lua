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

-- Lua would write 1.4e+12.
local function integer(number)
  return string.format('%.0f', number)
end

-- The server's clock in epoch milliseconds: the only clock that decides anything.
local function now_in_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- What an index writes. The value, which is that of an attribute, is not shown when something is wrong with the key.
local function index_set(name, value)
  return { index_key(name, value), 'set', index_key(name, '...') }
end

-- An error for the first {key, type} whose key holds another type; nil when all are as they should be. Lua has no
-- rollback, so this comes before the first write, for every key that will be written.
local function wrong_type(expected)
  for _, pair in ipairs(expected) do
    local actual = redis.call('TYPE', pair[1]).ok
    if actual ~= 'none' and actual ~= pair[2] then
      return redis.error_reply('WRONGTYPE ' .. (pair[3] or pair[1]) .. ' is a ' .. actual .. ', not a ' .. pair[2])
    end
  end
  return nil
end

local function record(what, id, now, ...)
  redis.call('XADD', events, '*', 'type', what, 'session', id, 'at', integer(now), ...)
end
