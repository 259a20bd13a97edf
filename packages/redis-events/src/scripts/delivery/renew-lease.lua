#!lua flags=allow-oom
--[[
  renew-lease: renews the leases of an instance on the entries that it handles. It never takes an entry back.

  KEYS[1] events stream
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3..] positions

  Returns one word for each position
    'renewed'
    'lost'     another instance has taken the entry over, or the entry is settled
]]
-- include: pending
local events, group, consumer = KEYS[1], ARGV[1], ARGV[2]

local function renew_entry(position)
  if not pending_at(events, group, position, consumer) then return 'lost' end
  redis.call('XCLAIM', events, group, consumer, 0, position, 'JUSTID')
  return 'renewed'
end

local words = {}
for i = 3, #ARGV do words[i - 2] = renew_entry(ARGV[i]) end
return words
