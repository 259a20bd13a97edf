-- The limit of the sessions of a principal: '<number> end-oldest', '<number> refuse', or 'until <epoch ms> <name>' when
-- there is room for a session of this principal until then; nil for an empty text.
local function limit_in(text)
  local most, way = string.match(text, '^(%d+) (.+)$')
  if most then return { most = tonumber(most), refuses = way == 'refuse' } end
  local latest, principal = string.match(text, '^until (%d+) (.*)$')
  return latest and { latest = tonumber(latest), principal = principal }
end

-- Whether the time has passed for which there was room.
local function is_late(limit, now) return limit and limit.latest and now > limit.latest end
