#!lua flags=allow-oom
--[[
  finish-epoch: records that all sessions of an epoch have been ended. It runs when Redis is out of memory: otherwise each
  instance would scan all keys every second.

  KEYS[1] epoch
  ARGV[1] the epoch in epoch ms

  Returns nothing
]]
redis.call('HSET', KEYS[1], 'ended', ARGV[1])
