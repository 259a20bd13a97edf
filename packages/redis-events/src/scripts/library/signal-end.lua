-- include: signal
-- How soon an end must be for a signal of it, in ms. Of several partitions, an instance looks at each only once in that
-- time unless a signal tells of an end before: `LONGEST_WAIT_WITH_SIGNALS` of cleanup/due-poller.ts.
local SIGNALLED_AHEAD = 60000

-- Tells the instances of an end in `wait` ms, if they would not find it in time.
local function signal_end(events, wait)
  if wait < SIGNALLED_AHEAD then signal(events, 'end ' .. math.max(0, wait)) end
end
