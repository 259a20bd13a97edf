-- include: live-session
-- A live session with all that a change of its times, its indexes or its id depends on; or nil, and what live_session()
-- says of that. `bucket` is what its hash says, and is_misplaced() finds out whether it is true.
local function whole_session(prefix, id, key, shadow)
  local fields, id, key, shadow, seals =
    live_session(prefix, id, key, shadow, 'index', 'creationTime', 'authenticatedAt', 'dataKey', 'size')
  return fields and {
    id = id, key = key, shadow = shadow, seals = seals, accessed = tonumber(fields[1]), interval = tonumber(fields[2]),
    absolute_expiry = tonumber(fields[3]), bucket = fields[4], index = fields[5], created_at = tonumber(fields[6]),
    authenticated_at = tonumber(fields[7]), data_key = fields[8], size = tonumber(fields[9]),
  }, not fields and id or nil
end
