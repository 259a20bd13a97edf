#!lua flags=allow-oom
--[[
  leave-takeover-mark: ends a session of another library, whose entry is never taken over again. Like every end, it runs
  when Redis is out of memory.

  KEYS[1] takeover mark of the id
  ARGV[1] how long the mark lives, in ms; -1: for ever

  Returns nothing
]]
-- include: takeover-mark
leave_takeover_mark(KEYS[1], ARGV[1])
