-- Of a new session, which lives for `most` ms at most until it is renewed: its end `ends_at`, the `bucket` of that, if it is
-- to stand in one, whether that one `is_new`, its index `entries`, and the text `index_field` for these. ARGV has its indexes from `first_index` on,
-- and its attributes from `first_attribute` on.
-- paste: clock
local interval, absolute_timeout, since = tonumber(ARGV[4]), tonumber(ARGV[5]), now
local absolute_expiry = absolute_timeout >= 0 and now + absolute_timeout * 1000 or nil
-- paste: end-since
if most and (not ends_at or now + most < ends_at) then ends_at = now + most end
local bucket, is_new
if ends_at then
  -- paste: place
end
local entries, index_field
if first_attribute > first_index then
  -- paste: index
  entries = new_entries(first_index, first_attribute - 1)
  if entries[1] then index_field = recorded_form(entries) end
end
