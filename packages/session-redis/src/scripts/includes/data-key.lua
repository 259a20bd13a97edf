-- A session keeps its first data key: values under another one could not be read. So a save that brings another one, from a
-- request that knew of none, is made again. So is a rotation that brings none: the data key has to be wrapped for the new
-- id. A data key of an equal beginning is the same one, wrapped for another id or under another key.
local current, same, fits = fields[9], '^"%d+:[^:]*', nil
if not (rotates or changes_index) then current = redis.call('HGET', key, 'dataKey') end
if current and data_keys then
  local _, brought = next(data_keys)
  fits = string.match(brought, same) == string.match(current, same)
elseif data_keys then
  fits = data_keys[id] ~= nil
else
  fits = not current
end
if not fits then return { 'resealed', id, current } end
