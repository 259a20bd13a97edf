-- A script has no rollback. So before its first write it reads each key that it will write, with a command of the key's
-- type.

-- A reply of redis.pcall(); nil when the key is of another type. Raises any other error.
local function checked(reply)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then error(reply) end
  return nil
end

-- The reply of a command; nil when its key is of another type.
local function read(...)
  return checked(redis.pcall(...))
end

-- The error for a key that is not of the type `kind`. Errors are logged, so they do not show `hidden`, the end of the
-- key: an id, which may be a token, or the value of an attribute.
local function wrong_type(kind, key, hidden)
  local shown = hidden and string.sub(key, 1, -1 - #hidden) .. '...' or key
  return redis.error_reply('WRONGTYPE ' .. shown .. ' is a ' .. redis.call('TYPE', key).ok .. ', not a ' .. kind)
end

-- The same; raises an error when the key is not of the type `kind`.
local function read_typed(kind, command, key, ...)
  local reply = read(command, key, ...)
  if reply == nil then error(wrong_type(kind, key)) end
  return reply
end
