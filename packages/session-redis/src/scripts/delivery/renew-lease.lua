#!lua flags=allow-oom
--[[
  renew-lease: an instance still works on entries of its group. What another one has taken over meanwhile is not taken
  back.

  KEYS[1] events
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3..] positions

  Returns one word for each position
    'renewed'
    'lost'
]]
-- include: delivery
local function renew(position)
  if not pending_at(KEYS[1], ARGV[1], position, ARGV[2]) then return 'lost' end
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, position, 'JUSTID')
  return 'renewed'
end

local words = {}
for i = 3, #ARGV do words[i - 2] = renew(ARGV[i]) end
return words
