#!lua flags=allow-oom
--[[
  settle-event: what becomes of an entry that an instance has handled. When it has failed it waits for its next attempt,
  longer each time, and the data of the session for as long as a new end; after too many failures it becomes a dead
  letter, with a copy of the data.

  KEYS[1] events
  KEYS[2] failing
  KEYS[3] retries
  KEYS[4] dead letters
  KEYS[5] session
  ARGV[1] group
  ARGV[2] consumer
  ARGV[3] position
  ARGV[4] done or failed
  ARGV[5] handlers that have succeeded, at this and at former attempts, as JSON
  ARGV[6] reason of the failure
  ARGV[7] attempts at most
  ARGV[8] ms until the second attempt, doubled with each further one
  ARGV[9] ms until the next attempt at most
  ARGV[10] retention in ms
  ARGV[11] how many dead letters are kept, about

  Returns
    'acknowledged'
    'retry'
    'dead'
    'lost'  it had failed here, but is not this instance's any more
]]
-- include: delivery, stream
local group, consumer, position, done = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local problem = wrong_type({ { events, 'stream' }, { KEYS[2], 'hash' }, { KEYS[3], 'zset' }, { KEYS[4], 'stream' } })
if problem then return problem end
if ARGV[4] == 'done' then
  finish(events, group, KEYS[2], KEYS[3], position)
  return 'acknowledged'
end

-- A foreign key in the place of a session is none.
local has_session = redis.call('TYPE', KEYS[5]).ok == 'hash'

local function failures_before()
  local readable, record = pcall(cjson.decode, redis.call('HGET', KEYS[2], position) or '{}')
  return readable and type(record) == 'table' and tonumber(record.attempts) or 0
end

-- The fields of the entry are kept, but for those of a former failure that it was replayed after.
local function bury(fields, attempts)
  local letter = { 'group', group, 'entry', position, 'reason', ARGV[6], 'attempts', attempts, 'done', done }
  local has_data = false
  for i = 1, #fields, 2 do
    has_data = has_data or fields[i] == 'data'
    if fields[i] ~= 'group' and fields[i] ~= 'done' then
      table.insert(letter, fields[i])
      table.insert(letter, fields[i + 1])
    end
  end
  if not has_data then
    table.insert(letter, 'data')
    table.insert(letter, cjson.encode(named(has_session and redis.call('HGETALL', KEYS[5]) or {})))
  end
  redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[11], '*', unpack(letter))
  finish(events, group, KEYS[2], KEYS[3], position)
end

local function wait(attempts)
  local delay = math.min(tonumber(ARGV[8]) * 2 ^ (attempts - 1), tonumber(ARGV[9]))
  redis.call('HSET', KEYS[2], position, '{"attempts":' .. attempts .. ',"done":' .. done .. '}')
  redis.call('ZADD', KEYS[3], integer(now_in_ms() + delay), position)
  redis.call('XCLAIM', events, group, waiting, 0, position, 'JUSTID')
  if has_session and redis.call('HEXISTS', KEYS[5], 'ended') == 1 then
    redis.call('PEXPIRE', KEYS[5], ARGV[10], 'GT')
  end
end

if not pending_at(events, group, position, consumer) then return 'lost' end
local entry = redis.call('XRANGE', events, position, position)[1]
if not entry then
  finish(events, group, KEYS[2], KEYS[3], position)
  return 'lost'
end
local attempts = failures_before() + 1
if attempts < tonumber(ARGV[7]) then
  wait(attempts)
  return 'retry'
end
bury(entry[2], attempts)
return 'dead'
