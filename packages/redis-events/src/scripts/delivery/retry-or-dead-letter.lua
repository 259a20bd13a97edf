#!lua flags=allow-oom
--[[
  retry-or-dead-letter: records that handlers of an entry failed. The entry waits for its retry, longer each time, and data
  that only the entry needs is kept for the retention once more. After too many failures the entry becomes a dead letter,
  with a copy of the data; with ARGV[6] = 0 at once, as for an entry that instances died over. library/dead-letters says
  which dead letters make room for it.

  KEYS[1] events stream
  KEYS[2] failing events of the group
  KEYS[3] retries of the group
  KEYS[4] dead letters
  KEYS[5] hash with the data of the entry; missing: the entry refers to none
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] position
  ARGV[4] names of the handlers that have succeeded, in all attempts, as JSON
  ARGV[5] reason of the failure
  ARGV[6] at most how many attempts
  ARGV[7] back-off in ms before the second attempt; doubles with each attempt. RETRIES of session-core has the numbers
  ARGV[8] longest back-off in ms
  ARGV[9] retention in ms
  ARGV[10] most bytes of the partition's dead letters
  ARGV[11] most bytes of the data in a dead letter
  ARGV[12] name of the first handler that failed; empty: instances died over the entry
  ARGV[13] field that the hash has when only the entry needs it

  Returns
    'retry'
    'dead'
    'lost'  the entry no longer belongs to this instance
]]
-- include: clock, digits, event-data, groups, pending, types
local events, failing, retries, dead, hash = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, consumer, position = ARGV[1], ARGV[2], ARGV[3]
local failure = { done = ARGV[4], reason = ARGV[5], handler = ARGV[12] }
local most_attempts, end_field = tonumber(ARGV[6]), ARGV[13]
local first_back_off, longest_back_off, retention = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local most_bytes, most_data = tonumber(ARGV[10]), tonumber(ARGV[11])
assert_types({ { events, 'stream' }, { failing, 'hash' }, { retries, 'zset' } })

-- A stray key in the place of the data is none.
local has_hash = hash and redis.call('TYPE', hash).ok == 'hash'

local function failures_before()
  local readable, record = pcall(cjson.decode, redis.call('HGET', failing, position) or '{}')
  return readable and type(record) == 'table' and tonumber(record.attempts) or 0
end

local function add(letter, name, value)
  table.insert(letter, name)
  table.insert(letter, value)
end

-- Adds a copy of the data that the entry refers to, unless that is too large.
local function add_data(letter)
  local data, size = has_hash and redis.call('HGETALL', hash) or {}, 0
  for _, text in ipairs(data) do size = size + #text end
  if size <= most_data then add(letter, 'data', cjson.encode(named(data))) else add(letter, 'dataSize', size) end
end

-- The dead letter keeps the fields of the entry, except those of an earlier dead letter that was replayed.
local function letter_of(fields, attempts)
  local letter = { 'group', group, 'entry', position, 'reason', failure.reason, 'attempts', attempts, 'done', failure.done }
  if failure.handler ~= '' then add(letter, 'handler', failure.handler) end
  local has_data = false
  for i = 1, #fields, 2 do
    has_data = has_data or fields[i] == 'data'
    if fields[i] ~= 'group' and fields[i] ~= 'done' then add(letter, fields[i], fields[i + 1]) end
  end
  if not has_data then add_data(letter) end
  return letter
end

local function schedule_retry(attempts)
  local delay = math.min(first_back_off * 2 ^ (attempts - 1), longest_back_off)
  redis.call('HSET', failing, position, '{"attempts":' .. attempts .. ',"done":' .. failure.done .. '}')
  redis.call('ZADD', retries, digits(now_in_ms() + delay), position)
  redis.call('XCLAIM', events, group, RETRIES_CONSUMER, 0, position, 'JUSTID')
  if has_hash then keep_for_retry(hash, end_field, retention) end
end

if not pending_at(events, group, position, consumer) then return 'lost' end
local entry = redis.call('XRANGE', events, position, position)[1]
if not entry then
  settle(events, group, failing, retries, position)
  return 'lost'
end
local attempts = failures_before() + 1
if attempts < most_attempts then
  schedule_retry(attempts)
  return 'retry'
end
-- include: dead-letters
-- Not before: a retry needs no dead letters.
assert_types({ { dead, 'stream' } })
local letters = dead_letters(dead)
assert_types(records_of(letters))
add_letter(letters, letter_of(entry[2], attempts), most_bytes)
settle(events, group, failing, retries, position)
return 'dead'
