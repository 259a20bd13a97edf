-- The bounds of a session: see `exceededBound()` of session-core.

-- The attributes that do not count: those of attribute-names.ts in session-core.
local OWN = { ['sessionAttr:nest-session.principal'] = true, ['sessionAttr:nest-session.rememberMe'] = true,
  ['sessionAttr:nest-session.cookieMaxAge'] = true, ['sessionAttr:nest-session.initialized'] = true,
  ['sessionAttr:nest-session.visitor.csrf'] = true, ['sessionAttr:nest-session.visitor.device'] = true,
  ['sessionAttr:nest-session.visitor.turn'] = true, ['sessionAttr:nest-session.provider'] = true,
}

-- The bytes of a field with this text; nil when it is no attribute that counts.
local function bytes_in(field, text)
  if not text or OWN[field] or string.sub(field, 1, 12) ~= 'sessionAttr:' then return nil end
  local length = #text
  -- What is encrypted counts as the text that it was.
  if string.sub(text, 1, 5) == 'enc1:' then length = math.max(0, math.floor((length - 5) * 3 / 4) - 28) end
  return #field - 12 + length
end

local function sum_of(bytes)
  local count, size = 0, 0
  for _, each in pairs(bytes) do count, size = count + 1, size + each end
  return count, size
end

-- The bytes of the attributes of a session after a change; and the reply to one after which it would hold more than a bound
-- allows, and more than before.
local function counted_size(key, change)
  local bytes, found, set = {}, redis.call('HGETALL', key), change.set
  for i = 1, #found, 2 do bytes[found[i]] = bytes_in(found[i], found[i + 1]) end
  local count_before, size_before = sum_of(bytes)
  for _, field in ipairs(change.lost or {}) do bytes[field] = nil end
  for i = 1, #set, 2 do bytes[set[i]] = bytes_in(set[i], set[i + 1]) end
  for _, field in ipairs(change.removed or {}) do bytes[field] = nil end
  local count, size = sum_of(bytes)
  if count > math.max(change.max_attributes, count_before) then return size, { 'full', 'maxAttributes' } end
  if size > math.max(change.max_size, size_before) then return size, { 'full', 'maxSessionSize' } end
  return size, nil
end
