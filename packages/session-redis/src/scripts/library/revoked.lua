-- Whether every session of a principal was ended after a request began, `age` ms ago, nil: no matter when. The mark has
-- the time of that end; one later than now is from a time when the clock was ahead. `principal`: the value in the index.
local function is_revoked(prefix, principal, age, now)
  local mark = age and redis.pcall('GET', prefix .. 'revoked:principal:' .. principal)
  local at = type(mark) == 'string' and tonumber(mark)
  return at and now - age < at and at <= now
end
