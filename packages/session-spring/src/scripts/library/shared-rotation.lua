-- include: shared-index, shared-session
-- A new id for a session that is shared with Spring.

-- The reply to a rotation that was sent twice, which finds the forwarding mark that it left itself; nil for any other
-- one.
local function reply_of_rotation(place, id, new_id, signs_in, now)
  local mark = redis.call('GET', place.own .. 'sessions:forwarded:' .. id)
  if not mark or target_of(mark) ~= new_id then return nil end
  local session, word = live_shared(place, new_id, now)
  if not session then return { word and 'saved' or 'gone' } end
  local signed_in = signs_in and redis.call('GET', place.own .. 'sessions:signed-in:' .. session.id)
  return { 'saved', signed_in and string.match(signed_in, '^%d+') or nil }
end

-- Gives it the new id everywhere but where its end is noted, and leaves the forwarding mark. Returns the former id.
local function rename_shared(place, session, new_id, mark, forwarded_for, spring_name)
  local former, own = session.id, place.own .. 'sessions:'
  local new = { key = place.prefix .. 'sessions:' .. new_id, shadow = place.prefix .. 'sessions:expires:' .. new_id }
  local keys = {
    [session.key] = new.key, [session.shadow] = new.shadow, [own .. 'signed-in:' .. former] = own .. 'signed-in:' .. new_id,
  }
  for key, later in pairs(keys) do
    if redis.call('EXISTS', key) == 1 then redis.call('RENAME', key, later) end
  end
  -- Spring may have signed in somebody else than was signed in here.
  for _, name in ipairs({ session.principal or '', spring_name ~= '' and spring_name or session.signed_in or '' }) do
    unlist(place, former, name)
    list(place, new_id, name)
  end
  redis.call('SET', own .. 'forwarded:' .. former, mark, 'PX', forwarded_for)
  session.id, session.key, session.shadow = new_id, new.key, new.shadow
  return former
end
