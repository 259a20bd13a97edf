-- include: ends, member
-- Lets a session end then, nil for never, and moves its member if it has to.
local function renew(partition, session, ends_at, now, grace)
  if is_misplaced(partition, session, ends_at, now) then
    -- include: rebucket
    rebucket(partition, session, ends_at, now)
  end
  set_end(session, ends_at, grace)
end
