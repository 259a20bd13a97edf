-- include: kept-attributes
-- The fields of the attributes that a session loses: all when it is cleared, those that a sign-in does not keep.
local function lost_attributes(key, change)
  local lost, keeps = {}, not change.clears and keeps_by(change.sign_in)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local is_attribute = string.sub(field, 1, 12) == 'sessionAttr:'
    if is_attribute and not (keeps and keeps(field)) then table.insert(lost, field) end
  end
  return lost
end
