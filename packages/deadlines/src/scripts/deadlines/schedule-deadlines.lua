#!lua
--[[
  schedule-deadlines: schedules deadlines of one name. Each says what happens to one that waits under the same key.

  KEYS[1] sorted set of what waits of the name, KEYS[2] of the names, KEYS[3] events stream
  KEYS[4..] hash of each deadline, all different
  ARGV[1] name
  ARGV[2] at most how many of the name may wait
  ARGV[3..] ten for each deadline: its member of the sorted set; 'in' or 'at'; ms; 'replace', 'keep', 'earlier' or 'later'; id;
            key; trace, empty: none; when it was scheduled, in epoch ms, empty: now; data key of the data, empty: they are not
            encrypted, '-': there are none; the data

  Returns the ms until the first one is due that is scheduled now, empty when none is; and one word for each deadline
    'scheduled'
    'replaced'   it takes the place of one that waited
    'kept'       the one that waits stays
    'full'       as many of the name wait as may
]]
-- include: clock, deadline
local due, names, events = KEYS[1], KEYS[2], KEYS[3]
local name, most, now = ARGV[1], tonumber(ARGV[2]), now_in_ms()
local waiting, first = read_typed('zset', 'ZCARD', due), nil
read_typed('zset', 'ZCARD', names)

local function deadline_at(i)
  local hash, at = KEYS[4 + i], 3 + 10 * i
  local known, has_fired = waiting_at(hash, ARGV[at])
  return {
    hash = hash, member = ARGV[at], time = time_of(ARGV[at + 1], ARGV[at + 2], now), if_exists = ARGV[at + 3],
    known = known, has_fired = has_fired, id = ARGV[at + 4], key = ARGV[at + 5], trace = ARGV[at + 6],
    scheduled_at = tonumber(ARGV[at + 7]) or now, data_key = ARGV[at + 8], data = ARGV[at + 9],
  }
end

-- As `stays()` of deadlines/map-deadline.module.ts.
local function stays(deadline)
  local known, if_exists = deadline.known, deadline.if_exists
  if not known or if_exists == 'replace' then return false end
  return if_exists == 'keep' or if_exists == 'earlier' and known <= deadline.time or if_exists == 'later' and known >= deadline.time
end

local function write_deadline(deadline)
  local fields = { 'name', name, 'key', deadline.key, 'id', deadline.id, 'due', digits(deadline.time) }
  local absent = { 'fired' }
  local function add(field, value, is_there)
    if is_there then fields[#fields + 1], fields[#fields + 2] = field, value else absent[#absent + 1] = field end
  end
  add('at', digits(deadline.scheduled_at), true)
  add('traceparent', deadline.trace, deadline.trace ~= '')
  add('data', deadline.data, deadline.data_key ~= '-')
  add('dataKey', deadline.data_key, deadline.data_key ~= '-' and deadline.data_key ~= '')
  redis.call('HSET', deadline.hash, unpack(fields))
  -- Not UNLINK before: while its slot moves to another node, Redis would refuse to create the hash again.
  if deadline.known or deadline.has_fired then
    redis.call('HDEL', deadline.hash, unpack(absent))
    redis.call('PERSIST', deadline.hash)
  end
  note_due(due, names, name, deadline.member, deadline.time)
  first = math.min(first or deadline.time, deadline.time)
end

local function schedule(deadline)
  if stays(deadline) then return 'kept' end
  if not deadline.known and waiting >= most then return 'full' end
  if not deadline.known then waiting = waiting + 1 end
  write_deadline(deadline)
  return deadline.known and 'replaced' or 'scheduled'
end

local deadlines, reply = {}, { '' }
for i = 0, #KEYS - 4 do deadlines[i + 1] = deadline_at(i) end
for i, deadline in ipairs(deadlines) do reply[i + 1] = schedule(deadline) end
if first then reply[1] = tell_due(events, first, now) end
return reply
