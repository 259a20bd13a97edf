-- Whether every session of a principal was ended after the request began that is to make a session one of theirs. Their
-- revocation mark has the time of that end, in epoch ms; one that is later than now is from a time when the clock was
-- ahead. `principal`: the value in the index; `age`: how long ago the request began, in ms, or nil: no matter when.
local function is_revoked(prefix, principal, age, now)
  local mark = age and redis.pcall('GET', prefix .. 'revoked:principal:' .. principal)
  local at = type(mark) == 'string' and tonumber(mark)
  return at and now - age < at and at <= now
end
