-- include: live-session
-- A live session with all that a change of its times, its indexes or its id depends on.
local function whole_session(prefix, id, key, shadow)
  local session, fields = live_session(prefix, id, key, shadow, 'index', 'creationTime', 'authenticatedAt', 'dataKey', 'size')
  if not session then return nil end
  session.index, session.data_key, session.size = fields[5], fields[8], tonumber(fields[9])
  session.created_at, session.authenticated_at = tonumber(fields[6]), tonumber(fields[7])
  return session
end
