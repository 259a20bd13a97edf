-- include: keys
-- Whether there is a live session, for who looks at others than its own. A stray key in the place of its session hash
-- or of its shadow key is none, nor is one of them without the other.
local function is_live(key, shadow)
  return read('GET', shadow) and read('HEXISTS', key, 'lastAccessedTime') == 1
end
