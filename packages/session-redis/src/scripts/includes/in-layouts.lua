-- Runs a script where its session is while the sessions move from one layout of the partitions to another one. The script
-- is the function `run` of its keys and arguments. KEYS has its keys in the old layout, then those in the new one, then the
-- meta hash. ARGV has its arguments, with the prefix of the new layout, and then these five:
local kind = ARGV[#ARGV - 4] -- 'session', 'new', 'takeover' or 'ledger': what the script is for
local stage = ARGV[#ARGV - 3] -- 'before', 'moving' or 'after': how far the instance believes the move to be
local record = ARGV[#ARGV - 2] -- what the meta hash records at this stage
local old_prefix, new_prefix = ARGV[#ARGV - 1], ARGV[#ARGV] -- of the keys of the partition; empty for a ledger
for i = #ARGV, #ARGV - 4, -1 do ARGV[i] = nil end
local recorded = redis.call('HGET', KEYS[#KEYS], 'partitions')
if recorded and recorded ~= record then return redis.error_reply('REPARTITIONED ' .. recorded) end

local here, elsewhere = {}, {}
for i = 1, (#KEYS - 1) / 2 do here[i], elsewhere[i] = KEYS[i], KEYS[i + (#KEYS - 1) / 2] end
if stage ~= 'before' then here, elsewhere = elsewhere, here end
if kind == 'ledger' then
  if stage == 'moving' and redis.call('EXISTS', elsewhere[1]) == 1 then redis.call('RENAME', elsewhere[1], here[1]) end
  return run(here, ARGV)
end
if stage == 'before' then ARGV[1] = old_prefix end
if kind == 'session' and stage == 'moving' and old_prefix ~= new_prefix then
  -- include: move
  -- Brings the session to its new place, with the forwarding marks that lead to it: what comes later looks there.
  local id = ARGV[2]
  for _ = 1, 15 do
    if redis.call('EXISTS', old_prefix .. 'sessions:expires:' .. id) == 1 then
      move(id)
      break
    end
    local mark = redis.call('GET', old_prefix .. 'sessions:moved:' .. id)
    if not mark then break end
    redis.call('RENAME', old_prefix .. 'sessions:moved:' .. id, new_prefix .. 'sessions:moved:' .. id)
    -- Also where it forwards nothing: a rotation that was sent twice finds its session.
    id = string.match(mark, '^cleared:(%S*)') or string.match(mark, '^%S*')
  end
end
if kind == 'session' then
  -- A rotation: the new id may be taken in the other layout.
  for i = 6, 8 do if elsewhere[8] and elsewhere[i] ~= here[i] then here[#here + 1] = elsewhere[i] end end
else
  -- The script looks at its own layout itself.
  local function exist(first, last)
    return elsewhere[first] and redis.call('EXISTS', unpack(elsewhere, first, last)) > 0
  end
  if kind == 'new' and exist(8) or kind == 'takeover' and exist(8, 8) then return { 'gone' } end
  if kind == 'takeover' and exist(9) then return { 'refused' } end
  if exist(3, 5) then return { 'collision' } end
end
return run(here, ARGV)
