-- include: set-end, member
-- Lets a session end then, nil for never, and moves its member if it has to.
local function renew(partition, session, ends_at, now, grace)
  local is_elsewhere
  is_elsewhere, session.is_in_bucket, session.due = is_misplaced(partition.prefix, session.id, session.bucket, ends_at, now)
  if is_elsewhere then
    -- include: rebucket
    rebucket(partition, session, ends_at, now)
  end
  set_end(session.key, session.shadow, ends_at, grace)
end
