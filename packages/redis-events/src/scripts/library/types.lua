-- include: keys
-- For keys that are written unread.

-- The error for the first of some {key, type} that is of another type; nil when there is none.
local function mistyped(expected)
  for _, pair in ipairs(expected) do
    local actual = redis.call('TYPE', pair[1]).ok
    if actual ~= 'none' and actual ~= pair[2] then return wrong_type(pair[2], pair[1]) end
  end
  return nil
end

-- Raises that error.
local function assert_types(expected)
  local problem = mistyped(expected)
  if problem then error(problem) end
end
