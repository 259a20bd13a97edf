-- include: put
-- Moves a session to its index entries after a change, where it has the id `new_id`, and adds to the change the field for them.
local function move_entries(session, new_id, entries, change, now)
  -- A rotation keeps the score.
  local score = not change.signs_out and session.authenticated_at or session.created_at or now
  if change.sign_in then score = now end
  for _, entry in ipairs(entries.before) do redis.call('ZREM', entry.set, session.id) end
  for _, entry in ipairs(entries.after) do redis.call('ZADD', entry.set, score, new_id) end
  if change.indexes[1] then put(change, 'index', entries.field) end
end
