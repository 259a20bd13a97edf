#!lua flags=allow-oom
--[[
  mend-lasting-buckets: looks which buckets of Spring have no time to live.

  KEYS the buckets
  ARGV[1] 1: let them expire

  Returns the number of each bucket without a time to live
]]
-- include: spring-bucket
local mends, reply = ARGV[1] == '1', {}

for i, bucket in ipairs(KEYS) do
  if redis.call('PTTL', bucket) == -1 then
    reply[#reply + 1] = i
    if mends then redis.call('PEXPIRE', bucket, SPRING_GRACE) end
  end
end
return reply
