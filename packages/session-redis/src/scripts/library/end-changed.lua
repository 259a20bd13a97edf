-- include: end, write-change
-- Ends a session whose time is over by a change. Where nobody wants the event, nothing is left to write to.
local function end_changed(partition, session, change, retention, now)
  local ending = { how = 'expired', at = now, retention = retention }
  if change.interval == 0 then ending.how, ending.cause = 'deleted', 'invalidated' end
  -- Most saves have no need to read it.
  session.index = session.index or redis.call('HGET', session.key, 'index')
  end_session(partition, session, ending)
  if ending.is_wanted then write_change(session.key, change) end
end
