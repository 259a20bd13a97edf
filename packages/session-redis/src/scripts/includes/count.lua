-- Makes `size` more exact. The save is refused when there is too much after it, and more than before. The library's own
-- attributes do not count: those of own-attributes.ts in session-core.
local most_bytes, own = (largest - most_attributes) / 1000000, {}
for _, name in ipairs({
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME',
  'nest-session.visitor.csrf', 'nest-session.rememberMe', 'nest-session.cookieMaxAge', 'nest-session.initialized',
}) do own['sessionAttr:' .. name] = true end
-- The bytes of an attribute; nil when it does not count.
local function bytes_in(field, text)
  -- Spring Session removes an attribute by emptying its field.
  if not text or text == '' or own[field] or string.sub(field, 1, 12) ~= 'sessionAttr:' then return nil end
  local length = #text
  -- What is encrypted counts as the text that it was.
  if string.sub(text, 1, 5) == 'enc1:' then length = math.max(0, math.floor((length - 5) * 3 / 4) - 28) end
  return #field - 12 + length
end
local before = size and size - added or -1
for i = first_attribute, size and last or 0, 2 do
  local replaced = bytes_in(ARGV[i], redis.call('HGET', key, ARGV[i]))
  if replaced then before, size = before - replaced * 1000000 - 1, size - replaced * 1000000 - 1 end
end
-- Below 0 there is more than was counted: others have written it, who do not count. A full count costs as much as a load,
-- but later saves need none of this again for long; so one save in sixteen counts.
if before < 0 or time[2] % 16 == 0 or size % 1000000 > most_attributes or size >= (most_bytes + 1) * 1000000 then
  local bytes_of = {}
  local function sum()
    local attributes, bytes = 0, 0
    for _, each in pairs(bytes_of) do attributes, bytes = attributes + 1, bytes + each end
    return attributes, bytes
  end
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do bytes_of[found[i]] = bytes_in(found[i], found[i + 1]) end
  local attributes_before, bytes_before = sum()
  for _, field in ipairs(stale or {}) do bytes_of[field] = nil end
  for i = first_attribute, last, 2 do bytes_of[ARGV[i]] = bytes_in(ARGV[i], ARGV[i + 1]) end
  for i = first_removed, last_removed do bytes_of[ARGV[i]] = nil end
  local attributes, bytes = sum()
  if not signs_in then
    if attributes > math.max(most_attributes, attributes_before) then return { 'full', 'maxAttributes' } end
    if bytes > math.max(most_bytes, bytes_before) then return { 'full', 'maxSessionSize' } end
  end
  size = bytes * 1000000 + math.min(attributes, 400000)
end
