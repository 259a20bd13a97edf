-- include: keys
-- Leads along the forwarding marks of an id to the live session: its id, its keys, and the rules of the sign-ins on the
-- way; nil when there is none. `text`: the reply for the shadow key of the id. A mark has the later id, and after a
-- sign-in also the rule which attributes that keeps.
local function follow_marks(prefix, id, key, shadow, text)
  local seals = {}
  -- A chain of marks is short, because they do not live long. The limit stops a planted circle.
  for _ = 1, 15 do
    if text ~= false then break end
    local mark = redis.call('GET', prefix .. 'sessions:forwarded:' .. id)
    -- One that lives for longer than a minute is from a time when the clock was ahead.
    if not mark or redis.call('PTTL', prefix .. 'sessions:forwarded:' .. id) > 60000 then return nil end
    id = string.match(mark, '^%S*')
    if id ~= mark then table.insert(seals, string.sub(mark, #id + 2)) end
    key, shadow = prefix .. 'sessions:' .. id, prefix .. 'sessions:expires:' .. id
    text = redis.pcall('GET', shadow)
  end
  if text == false then return nil end
  if checked(text) == nil and redis.call('EXISTS', key) == 1 then error(wrong_type('string', shadow, id)) end
  return id, key, shadow, seals[1] and seals
end
