-- include: kept-attributes
-- The attributes that a session loses: all when it is cleared, those that a sign-in does not keep, else none.
local function lost_attributes(key, change)
  if not change.clears and not change.sign_in then return {} end
  local lost, keeps = {}, not change.clears and keeps_by(change.sign_in)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 12) == 'sessionAttr:' and not (keeps and keeps(field)) then table.insert(lost, field) end
  end
  return lost
end
