-- Where the member of a session with the end `ends_at` is to stand: in the sorted set. When a stray key has taken its
-- place, in `bucket`, and whether that one `is_new`.
-- include: types
if read('ZCARD', prefix .. 'ends') == nil then
  -- include: place-in-buckets
end
