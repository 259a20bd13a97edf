-- Which attributes a sign-in keeps: a function that tells it of a field, as isKept() of session-core does. `rule`: a
-- KeptAttributes of session-core as JSON. The prefix is VISITOR_PREFIX there.
local function keeps_by(rule)
  local lists, named = cjson.decode(rule), {}
  for _, name in ipairs(lists.only or lists.butNot) do named['sessionAttr:' .. name] = true end
  if lists.only then return function(field) return named[field] end end
  return function(field)
    return not named[field] and string.find(field, 'sessionAttr:nest-session.visitor.', 1, true) ~= 1
  end
end

-- The fields of the attributes that a session loses: all when it is cleared, those that a sign-in does not keep.
local function lost_attributes(key, change)
  local lost, keeps = {}, not change.clears and keeps_by(change.sign_in)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 12) == 'sessionAttr:' and not (keeps and keeps(field)) then table.insert(lost, field) end
  end
  return lost
end
