-- Sets the end of the session. The session hash outlives the shadow key by the grace period, so that the end can be
-- announced with the data.
if ends_at then
  redis.call('PEXPIREAT', shadow, ends_at)
  redis.call('PEXPIREAT', key, ends_at + ARGV[3])
else
  redis.call('PERSIST', shadow)
  redis.call('PERSIST', key)
end
