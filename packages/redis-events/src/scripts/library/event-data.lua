-- include: fields, keys
-- The data that an event of an end refers to: a hash that only this event still needs, as its field `end_field` says.
-- library/keep-ended keeps that of a session for the retention.

-- Keeps it for another retention, in ms, because the event is tried again.
local function keep_for_retry(hash, end_field, retention)
  if redis.call('HEXISTS', hash, end_field) == 1 then redis.call('PEXPIRE', hash, retention, 'GT') end
end

-- The hash that goes with an event; nil when none does. `data`: what the keys of hashes begin with (`prefix`), the
-- field of an event with the rest (`id_field`), `end_field`, and the types of the `events` with which a hash goes. A
-- stray key stays.
local function data_of(data, event)
  local id = value_in(event, data.id_field)
  if id == '' or not data.events[value_in(event, 'type')] then return nil end
  return read('HEXISTS', data.prefix .. id, data.end_field) == 1 and data.prefix .. id or nil
end
