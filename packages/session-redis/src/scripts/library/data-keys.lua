-- The data key of encrypted attributes. A session keeps its first one: values under another one could not be read.

local function data_key_for(id, change)
  for i = 1, #change.data_keys, 2 do
    if change.data_keys[i] == id then return change.data_keys[i + 1] end
  end
end

-- The reply to a change that brings another data key than the session has, or none for its id; nil when it may be made.
-- One of an equal beginning is the same one, wrapped for another id or under another key.
local function other_data_key(session, change)
  local current, brought, same = session.data_key, change.data_keys[2], '^%d+:[^:]*'
  local fits = not brought or data_key_for(session.id, change)
  if current then fits = brought and string.match(brought, same) == string.match(current, same) end
  return not fits and { 'resealed', session.id, current } or nil
end
