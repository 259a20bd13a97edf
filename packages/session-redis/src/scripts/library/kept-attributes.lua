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
