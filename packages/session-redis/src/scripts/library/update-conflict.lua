-- The reply to a change that expects another text than the attribute has; nil when it has that. Also where the text equals
-- the new one: another request may have counted from 1 to 2 as well. `absent`: the text of a field that is no attribute.
local function conflict_with(key, change, is_forwarded, absent)
  local current = redis.call('HGET', key, change.expected_field)
  if (current and current ~= absent and redis.sha1hex(current) or '') == change.expected_hash then return nil end
  -- The old token must not read anything any more, so a forwarded change does not learn the text.
  return is_forwarded and { 'gone' } or { 'conflict', current ~= absent and current }
end
