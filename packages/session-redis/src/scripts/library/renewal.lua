-- include: set-end, member
-- Lets a session end then, nil for never, and moves its member if it has to. `bucket` is what its hash says.
local function renew(prefix, bucket_list, events, id, key, shadow, bucket, ends_at, now, grace)
  local is_elsewhere, is_in_bucket, due = is_misplaced(prefix, id, bucket, ends_at, now)
  if is_elsewhere then
    -- include: rebucket
    local session = { id = id, key = key, bucket = bucket, is_in_bucket = is_in_bucket, due = due }
    rebucket({ prefix = prefix, bucket_list = bucket_list, events = events }, session, ends_at, now)
  end
  set_end(key, shadow, ends_at, grace)
end
