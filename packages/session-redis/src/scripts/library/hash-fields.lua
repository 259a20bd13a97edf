-- Fields of a session hash. Lua passes at most 8000 values to a command.

local function write_fields(key, list)
  for i = 1, #list, 4000 do redis.call('HSET', key, unpack(list, i, math.min(i + 3999, #list))) end
end

local function remove_fields(key, list)
  for i = 1, #list, 4000 do redis.call('HDEL', key, unpack(list, i, math.min(i + 3999, #list))) end
end
