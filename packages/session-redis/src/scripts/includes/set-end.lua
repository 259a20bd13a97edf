-- Sets the end of the session; create-session does the same for a new one. The session hash outlives the shadow key by
-- the grace period, so that the end can be recorded with the data. includes/ended says how long the data is kept then.
if ends_at then
  redis.call('PEXPIREAT', shadow, ends_at)
  redis.call('PEXPIREAT', key, ends_at + ARGV[3])
else
  redis.call('PERSIST', shadow)
  redis.call('PERSIST', key)
end
