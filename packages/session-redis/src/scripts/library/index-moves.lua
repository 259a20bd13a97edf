-- include: write-change, index-score
-- Moves a session, with the id `new_id`, to its index entries after a change, and adds the field for them to the change.
local function move_entries(session, new_id, entries, change, now)
  for _, entry in ipairs(entries.after) do
    -- A rotation keeps the score.
    local kept = not change.sign_in and not change.signs_out
      and (redis.call('ZSCORE', entry.set, session.id) or session.authenticated_at)
    entry.score = change.sign_in and score_after_all(entry.set, now) or kept or session.created_at or now
  end
  for _, entry in ipairs(entries.before) do redis.call('ZREM', entry.set, session.id) end
  for _, entry in ipairs(entries.after) do redis.call('ZADD', entry.set, entry.score, new_id) end
  if change.indexes[1] then put(change, 'index', entries.field) end
end
