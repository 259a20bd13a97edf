-- include: keys, epoch
-- Whether a session is live that an index lists with this score. A stray key in the place of its session hash or of its
-- shadow key is none, nor is one of them without the other.
local function is_live(prefix, id, score, epoch)
  if is_ended_by(epoch, score) then return false end
  return read('GET', prefix .. 'sessions:expires:' .. id) and read('HEXISTS', prefix .. 'sessions:' .. id, 'lastAccessedTime') == 1
end
