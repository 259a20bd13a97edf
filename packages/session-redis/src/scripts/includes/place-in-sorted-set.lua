-- Where the member of a session with the end `ends_at` is to stand: in the sorted set. When a stray key has taken its
-- place, in `bucket`, and whether that one `is_new`.
-- paste: types
if read('ZCARD', prefix .. 'ends') == nil then
  -- paste: place-in-buckets
end
