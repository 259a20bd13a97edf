-- include: signal
-- How soon an end must be for a signal of it, in ms: `LONGEST_WAIT_WITH_SIGNALS` of cleanup/due-poller.ts.
local SIGNALLED_AHEAD = 60000

local function signal_end(events, wait)
  if wait < SIGNALLED_AHEAD then signal(events, 'end ' .. math.max(0, wait)) end
end
