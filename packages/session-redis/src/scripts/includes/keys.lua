-- The names of keys that only a script can know, spelled as in keys/session-keys.ts. All begin with the prefix, which
-- contains the partition's hash tag.
local prefix = ARGV[1]

local function session_key(id)
  return prefix .. 'sessions:' .. id
end

local function shadow_key(id)
  return prefix .. 'sessions:expires:' .. id
end

local function forwarding_mark(id)
  return prefix .. 'sessions:moved:' .. id
end

local function bucket_key(minute)
  return prefix .. 'expirations:' .. minute
end

-- The member of a bucket for a session.
local function member_of(id)
  return 'expires:' .. id
end

local function id_of_member(member)
  return string.match(member, '^expires:(.+)$')
end

local function index_key(name, value)
  return prefix .. 'index:' .. name .. ':' .. value
end

local function failing_key(group)
  return prefix .. 'events:failing:' .. group
end

local function retries_key(group)
  return prefix .. 'events:retries:' .. group
end
