-- include: keys
-- For keys that are written unread: the error for the first {key, type} that is of another type; nil when none is.

local function mistyped(expected)
  for _, pair in ipairs(expected) do
    local actual = redis.call('TYPE', pair[1]).ok
    if actual ~= 'none' and actual ~= pair[2] then return wrong_type(pair[2], pair[1]) end
  end
  return nil
end

local function assert_types(expected)
  local problem = mistyped(expected)
  if problem then error(problem) end
end
