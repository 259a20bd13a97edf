-- The end by an idle timeout of `interval` s that counts from `since`, as endOf() of session-core has it; nil: never.
local function end_after(since, interval, absolute_expiry)
  local idle_end = interval >= 0 and since + interval * 1000 or absolute_expiry
  return absolute_expiry and absolute_expiry < idle_end and absolute_expiry or idle_end
end
