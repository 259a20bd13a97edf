-- Sets the end of a session, in epoch ms; nil: never. Its hash outlives the shadow key by the grace period.
local function set_end(key, shadow, ends_at, grace)
  if not ends_at then return redis.call('PERSIST', shadow), redis.call('PERSIST', key) end
  redis.call('PEXPIREAT', shadow, ends_at)
  redis.call('PEXPIREAT', key, ends_at + grace)
end
