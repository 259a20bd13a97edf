-- include: hash-fields
-- Adds a field of the session hash to what a change sets, or without a value to what it removes. Lua itself writes no more
-- than 14 digits of a number.
local function put(change, field, value)
  local n, text = #change.set, type(value) == 'number' and string.format('%.0f', value) or value
  if text then change.set[n + 1], change.set[n + 2] = field, text else table.insert(change.removed, field) end
end

-- Adds what it does to a session, whether that goes on or ends. `data_key`: for the id that the session has then.
local function add_changes(session, change, absolute_expiry, data_key, now)
  if change.timeout and (absolute_expiry or session.absolute_expiry) then put(change, 'absoluteExpiry', absolute_expiry) end
  if change.interval then put(change, 'maxInactiveInterval', change.interval) end
  if change.sign_in or change.signs_out then put(change, 'authenticatedAt', change.sign_in and now) end
  if data_key then put(change, 'dataKey', data_key) end
end

-- Adds the fields of a session that goes on.
local function add_renewal(session, change, size, now)
  if size then put(change, 'size', size) end
  -- A slow request must not undo a later one.
  if not change.keeps_idle and (not session.accessed or session.accessed < now) then put(change, 'lastAccessedTime', now) end
end

local function write_change(key, change)
  remove_fields(key, change.lost or {})
  write_fields(key, change.set)
  remove_fields(key, change.removed or {})
end
