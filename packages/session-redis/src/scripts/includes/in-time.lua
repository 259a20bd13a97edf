-- Whether `limit` lets the change be made by now: see includes/limit.
local latest = string.match(limit, '^until (%d+)')
if latest and now > tonumber(latest) then return { 'late' } end
