-- include: forwarding-marks
-- Whether the session of a mark goes on, so that a request with the former token must not replace the one that its client
-- has, or gets. Not where nobody is signed in any more, and nobody has signed in since.
local function goes_on(prefix, mark)
  for _ = 1, MOST_MARKS do
    if not mark or word_of(mark) ~= 'left' then return not not mark end
    mark = redis.call('GET', prefix .. 'sessions:forwarded:' .. target_of(mark))
  end
  return true
end
