-- include: keys
-- Forwarding marks: see SessionChange of session-core. One that leads on has the later id, and after a sign-in also the
-- rule which attributes that keeps. One that leads nowhere has a word and a colon before the id.

-- Chains of marks are short, because they do not live long. The limit stops a planted circle.
local MOST_MARKS = 15

-- The word of a mark that leads nowhere; nil for one that leads on.
local function word_of(mark) return string.match(mark, '^(%a+):') end

-- The id that a rotation has given, whether or not its mark leads there.
local function target_of(mark) return string.match(mark, '^%a+:(%S+)') or string.match(mark, '^%S*') end

-- Leads along the marks of an id to the live session: its id, its keys, and the rules of the sign-ins on the way; or nil,
-- and the word of a mark that leads nowhere. `text`: the reply for the shadow key of the id.
local function follow_marks(prefix, id, key, shadow, text)
  local seals = {}
  for _ = 1, MOST_MARKS do
    if text ~= false then break end
    -- One that lives for longer than a minute is from a time when the clock was ahead.
    local mark_key = prefix .. 'sessions:forwarded:' .. id
    local mark = redis.call('PTTL', mark_key) <= 60000 and redis.call('GET', mark_key)
    if not mark or word_of(mark) then return nil, mark and word_of(mark) end
    id = target_of(mark)
    if id ~= mark then table.insert(seals, string.sub(mark, #id + 2)) end
    key, shadow = prefix .. 'sessions:' .. id, prefix .. 'sessions:expires:' .. id
    text = redis.pcall('GET', shadow)
  end
  if text == false then return nil end
  if checked(text) == nil and redis.call('EXISTS', key) == 1 then error(wrong_type('string', shadow, id)) end
  return id, key, shadow, seals[1] and seals
end
