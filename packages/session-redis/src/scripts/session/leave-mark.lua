#!lua flags=allow-oom
--[[
  leave-mark: remembers a number for a while. Of two numbers and two times, the greater stays. Like every end, it runs when
  Redis is out of memory.

  KEYS[1] mark
  ARGV[1] number, ARGV[2] for how long, in ms

  Returns nothing
]]
local mark, number, duration = KEYS[1], ARGV[1], tonumber(ARGV[2])
local known = redis.pcall('GET', mark)
if type(known) == 'string' and (tonumber(known) or -math.huge) > tonumber(number) then number = known end
redis.call('SET', mark, number, 'PX', math.max(redis.call('PTTL', mark), duration))
