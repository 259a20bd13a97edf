-- Where the member of a session with the end `ends_at` is to stand: `bucket`, and whether that one `is_new`.
-- paste: buckets
bucket = bucket_to_join(ends_at)
is_new = not is_listed(bucket)
