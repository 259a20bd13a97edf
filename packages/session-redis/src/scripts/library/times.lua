-- include: session-timeouts
-- The times of a session after a change, in epoch ms: when it ends, nil for never, and its end by the absolute timeout.
-- Then whether the change sets the end at all, and whether that has passed.
local function times_after(session, change, now)
  local interval, absolute_expiry, since = change.interval or session.interval, session.absolute_expiry, now
  if change.timeout then
    local signed_in_at = change.sign_in and now or not change.signs_out and session.authenticated_at or 0
    absolute_expiry = change.timeout >= 0 and math.max(session.created_at, signed_in_at) + change.timeout * 1000 or nil
  end
  -- The last access may lie in the future, when the clock was set back.
  if change.keeps_idle and session.accessed then since = math.min(session.accessed, now) end
  local ends_at = end_after(since, interval, absolute_expiry)
  local are_set = not change.keeps_idle or change.interval ~= nil or change.timeout ~= nil
  return ends_at, absolute_expiry, are_set, are_set and ends_at and ends_at <= now
end
