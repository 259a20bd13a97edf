-- Fields of a session hash. Lua passes at most 8000 values to a command.

-- Writes a list of fields and texts in turn.
local function write_fields(key, list)
  for i = 1, #list, 4000 do redis.call('HSET', key, unpack(list, i, math.min(i + 3999, #list))) end
end

-- Removes a list of fields.
local function remove_fields(key, list)
  for i = 1, #list, 4000 do redis.call('HDEL', key, unpack(list, i, math.min(i + 3999, #list))) end
end
