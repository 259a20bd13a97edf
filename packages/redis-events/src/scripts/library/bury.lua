-- include: keys
-- Makes a dead letter of a stray key or member, once `remove` has removed it. Returns whether it has. Every key that
-- the dead letter needs is read before. `claims`: the key `dead`, its `most_bytes`, and the time `at`.
local function bury(claims, what, reason, remove)
  -- include: dead-letters
  local letters = dead_letters(claims.dead)
  read_typed('zset', 'ZCARD', letters.index)
  for _, key in ipairs({ letters.sizes, letters.lost, letters.unreported }) do read_typed('hash', 'HLEN', key) end
  if not remove() then return false end
  add_letter(letters, { 'member', what, 'reason', reason, 'at', claims.at }, claims.most_bytes)
  return true
end
