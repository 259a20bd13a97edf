-- include: shared-events, shared-place, shared-index
-- Records the end of a session, once, and forgets it. `how`: 'deleted' or 'expired'; `cause`: a SessionDeletedReason of
-- session-core; `spring_name`: who is signed in by Spring Security alone.
local function record_end(place, session, how, cause, at, spring_name)
  record_shared(place, how, session, at, 'cause', cause)
  leave_place(place, session.id, end_of(session))
  unlist(place, session.id, session.principal)
  unlist(place, session.id, spring_name)
  unlist(place, session.id, session.signed_in)
  redis.call('DEL', place.own .. 'sessions:signed-in:' .. session.id)
  -- A slow request of Spring can bring back keys of a session that has ended. They live no longer than this.
  redis.call('SET', place.own .. 'sessions:ended:' .. session.id, '', 'PX', math.max(session.interval, 0) * 1000 + 2 * SPRING_GRACE)
end

-- Ends a live session as Spring does, whose applications hear of it by what happens to the shadow key: deleted or
-- expired. For them too, nothing is left to load, and the data stays for a while.
local function end_shared(place, session, how, cause, at, spring_name)
  record_end(place, session, how, cause, at, spring_name)
  redis.call('SET', session.shadow, '', 'PX', 1000)
  if how == 'deleted' then
    redis.call('HSET', session.key, 'maxInactiveInterval', 0)
    redis.call('DEL', session.shadow)
  else
    redis.call('PEXPIRE', session.shadow, 1)
  end
  redis.call('PEXPIRE', session.key, SPRING_GRACE)
end
