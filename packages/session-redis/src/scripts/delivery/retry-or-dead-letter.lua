#!lua flags=allow-oom
--[[
  retry-or-dead-letter: records that handlers of an entry failed. The entry waits for its retry, longer each time, and the
  data of an ended session is kept for the retention once more. After too many failures the entry becomes a dead letter,
  with a copy of the data; with ARGV[6] = 0 at once, as for an entry that instances died over. includes/dead-letters says
  which dead letters make room for it.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  KEYS[4] dead letters
  KEYS[5] session hash
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] position
  ARGV[4] names of the handlers that have succeeded, in all attempts, as JSON
  ARGV[5] reason of the failure
  ARGV[6] at most how many attempts
  ARGV[7] back-off in ms before the second attempt; doubles with each attempt. delivery/event-rules.ts has the numbers
  ARGV[8] longest back-off in ms
  ARGV[9] retention in ms
  ARGV[10] most bytes of the partition's dead letters
  ARGV[11] most bytes of the data in a dead letter
  ARGV[12] name of the first handler that failed; empty: instances died over the entry

  Returns
    'retry'
    'dead'
    'lost'  the entry no longer belongs to this instance
]]
-- paste: pending, stream
local group, consumer, position, done, dead = ARGV[1], ARGV[2], ARGV[3], ARGV[4], KEYS[4]
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' }, { dead, 'stream' } })
if problem then return problem end

-- A stray key in the place of the session hash is no session.
local has_session = redis.call('TYPE', KEYS[5]).ok == 'hash'

local function failures_before()
  local readable, record = pcall(cjson.decode, redis.call('HGET', KEYS[2], position) or '{}')
  return readable and type(record) == 'table' and tonumber(record.attempts) or 0
end

-- The dead letter keeps the fields of the entry, except those of an earlier dead letter that was replayed.
local function bury(fields, attempts)
  -- paste: dead-letters
  local foreign = wrong_type({
    { dead_index, 'zset' }, { dead_sizes, 'hash' }, { lost_letters, 'hash' }, { unreported_letters, 'hash' },
  })
  if foreign then return foreign end
  local letter = { 'group', group, 'entry', position, 'reason', ARGV[5], 'attempts', attempts, 'done', done }
  if ARGV[12] ~= '' then
    table.insert(letter, 'handler')
    table.insert(letter, ARGV[12])
  end
  local has_data = false
  for i = 1, #fields, 2 do
    has_data = has_data or fields[i] == 'data'
    if fields[i] ~= 'group' and fields[i] ~= 'done' then
      table.insert(letter, fields[i])
      table.insert(letter, fields[i + 1])
    end
  end
  if not has_data then
    local hash = has_session and redis.call('HGETALL', KEYS[5]) or {}
    local size = 0
    for _, text in ipairs(hash) do size = size + #text end
    if size <= tonumber(ARGV[11]) then
      table.insert(letter, 'data')
      table.insert(letter, cjson.encode(named(hash)))
    else
      table.insert(letter, 'dataSize')
      table.insert(letter, size)
    end
  end
  add_letter(letter, tonumber(ARGV[10]))
  finish(events, group, KEYS[2], KEYS[3], position)
  return 'dead'
end

local function schedule_retry(attempts)
  local delay = math.min(tonumber(ARGV[7]) * 2 ^ (attempts - 1), tonumber(ARGV[8]))
  redis.call('HSET', KEYS[2], position, '{"attempts":' .. attempts .. ',"done":' .. done .. '}')
  redis.call('ZADD', KEYS[3], integer(now_in_ms() + delay), position)
  redis.call('XCLAIM', events, group, retries_consumer, 0, position, 'JUSTID')
  if has_session and redis.call('HEXISTS', KEYS[5], 'ended') == 1 then
    redis.call('PEXPIRE', KEYS[5], ARGV[9], 'GT')
  end
end

if not pending_at(events, group, position, consumer) then return 'lost' end
local entry = redis.call('XRANGE', events, position, position)[1]
if not entry then
  finish(events, group, KEYS[2], KEYS[3], position)
  return 'lost'
end
local attempts = failures_before() + 1
if attempts < tonumber(ARGV[6]) then
  schedule_retry(attempts)
  return 'retry'
end
return bury(entry[2], attempts)
