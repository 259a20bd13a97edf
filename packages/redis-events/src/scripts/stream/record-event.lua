#!lua
--[[
  record-event: adds an event of the application. It says which groups want it: they get it whatever they want by then.

  KEYS[1] events stream
  KEYS[2] which events each group wants
  ARGV[1] type
  ARGV[2..] further fields and their values, in turn

  Returns the position of the entry
]]
-- include: clock, digits, signal, wishes
local events = KEYS[1]
local entry = { 'type', ARGV[1], 'at', digits(now_in_ms()), unpack(ARGV, 2) }
local groups = groups_by_wish(KEYS[2])[ARGV[1]]
if groups then entry[#entry + 1], entry[#entry + 2] = 'groups', cjson.encode(groups) end
local position = redis.call('XADD', events, '*', unpack(entry))
signal(events, 'events')
return position
