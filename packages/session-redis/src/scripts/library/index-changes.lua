-- include: index, revoked
-- The index entries of a session `before` a change and `after` it, and the field for the latter; who its principal `was`
-- before and `is` after, by the value in the index, nil for nobody. The limit of a principal makes room. The second result
-- is the reply to a change that may not list the session there, or for which there is no room yet.
local function index_changes(partition, session, change, retention, now)
  local before = session.index and recorded_entries(partition.prefix, session.index) or {}
  local after, changed, limit = new_entries(partition.prefix, change.indexes), {}, change.limit
  local principal = principal_in(after)
  if principal and is_revoked(partition.prefix, principal.value, change.age, now) then return nil, { 'revoked' } end
  if principal and limit then
    -- include: limit-in-one-partition
    local ending = { how = 'deleted', cause = 'limit', at = now, retention = retention }
    local refusal = make_room(partition, principal.set, session.id, limit, ending)
    if refusal then return nil, refusal end
  end
  for i = 1, #change.indexes, 2 do changed[change.indexes[i]] = true end
  for _, entry in ipairs(before) do
    if not changed[entry.name] then table.insert(after, entry) end
  end
  local was, is, field = principal_in(before), principal_in(after), after[1] and recorded_form(after)
  -- Another request has changed the principal since this one loaded the session.
  if limit and limit.principal and is and is.value ~= limit.principal then return nil, { 'unplaced', is.value } end
  return { before = before, after = after, field = field, was = was and was.value, is = is and is.value }
end
