-- `ends_at`: the end of a session whose idle timeout `interval`, in seconds, counts from `since`; nil when it never ends.
local ends_at = absolute_expiry
if interval >= 0 then
  ends_at = since + interval * 1000
  if absolute_expiry and absolute_expiry < ends_at then ends_at = absolute_expiry end
end
