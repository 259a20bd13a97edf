-- When a session ends by its timeouts, in epoch ms: the rule of endOf() in session-timeouts.ts of session-core.

-- The end by an idle timeout of `interval` s that counts from `since`; nil: never.
local function end_after(since, interval, absolute_expiry)
  if interval < 0 then return absolute_expiry end
  local ends_at = since + interval * 1000
  if absolute_expiry and absolute_expiry < ends_at then return absolute_expiry end
  return ends_at
end
