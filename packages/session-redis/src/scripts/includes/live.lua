-- The live session of ARGV[2], or the one that its forwarding marks lead to: its `id`, and its keys `key` and `shadow`.
-- `seals`: the rules of the sign-ins on the way, as JSON; nil without any. Without a live session the script ends.
local bucket_list, events = KEYS[1], KEYS[2]
local id, key, shadow, seals = ARGV[2], KEYS[3], KEYS[4], nil
local text = redis.pcall('GET', shadow)
if text ~= '' then
  -- paste: types
  -- A chain of marks is short: each lives for 60 s. The limit stops a planted circle.
  for _ = 1, 15 do
    if text ~= false then break end
    local mark = redis.call('GET', ARGV[1] .. 'sessions:forwarded:' .. id)
    if not mark then return { 'gone' } end
    id = string.match(mark, '^%S*')
    if id ~= mark then
      seals = seals or {}
      table.insert(seals, string.sub(mark, #id + 2))
    end
    key, shadow = ARGV[1] .. 'sessions:' .. id, ARGV[1] .. 'sessions:expires:' .. id
    text = redis.pcall('GET', shadow)
  end
  if text == false then return { 'gone' } end
  if checked(text) == nil and redis.call('EXISTS', key) == 1 then error(wrong_type('string', shadow, id)) end
end
