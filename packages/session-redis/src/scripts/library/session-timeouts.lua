-- When a session ends by its timeouts, in epoch ms: the rule of endOf() in session-timeouts.ts of session-core.

-- The end by an idle timeout of `interval` s that counts from `since`; nil: never.
local function end_after(since, interval, absolute_expiry)
  local idle_end = interval >= 0 and since + interval * 1000 or absolute_expiry
  return absolute_expiry and absolute_expiry < idle_end and absolute_expiry or idle_end
end
