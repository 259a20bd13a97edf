#!lua flags=allow-oom
--[[
  fire-deadlines: records an event for each deadline whose time has come, with its data. Every name that is due gets the same
  share of a call. A name that nobody handles goes on waiting, and so does everything while too many events wait for their
  groups. The oldest of those that wait for none make room.

  KEYS[1] sorted set of the names, KEYS[2] events stream, KEYS[3] dead letters
  KEYS[4] what the keys of deadlines begin with; no such key is there, so Redis lets the call wait while a slot moves: it would
          refuse to create a key again that is removed here
  ARGV[1] prefix of the partition's keys
  ARGV[2] how many deadlines at most
  ARGV[3] as many events as may wait
  ARGV[4] for how many ms it is known that a deadline has fired
  ARGV[5] most bytes of the partition's dead letters

  Returns the time in epoch ms; ms until the next one may be due, empty when none waits that anybody handles; 1 when too many
  events wait; and for each deadline its member, its time, and a word or number
    'corrupt'  a key has a wrong type, or is not there: it is a dead letter now
    'already'  that was told before
               A number: its event is recorded now, so many ms after its time
]]
-- include: clock, deadline, bury, wishes, groups, positions
local names, events, dead, hashes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local trimmed = events .. ':trimmed'
local prefix, most, known_for, now = ARGV[1], tonumber(ARGV[2]), ARGV[4], now_in_ms()
local letters = { dead = dead, most_bytes = tonumber(ARGV[5]), at = digits(now) }
local reply = { now, '', 0 }

local handlers = groups_by_wish(events .. ':wanted')

local function note_outcome(member, time, outcome)
  for _, each in ipairs({ member, time, outcome }) do reply[#reply + 1] = each end
end

-- For the groups that want it now, it stays until they have handled it.
local function record_event(name, fields)
  local entry = { 'type', 'deadline', 'name', name, 'at', digits(now), 'id', fields[1], 'key', fields[2], 'due', fields[3] }
  local optional = { 'traceparent', 'value', 'dataKey' }
  for i, field in ipairs(optional) do
    local value = fields[3 + i]
    if value then entry[#entry + 1], entry[#entry + 2] = field, value end
  end
  if handlers[name] then entry[#entry + 1], entry[#entry + 2] = 'groups', cjson.encode(handlers[name]) end
  redis.call('XADD', events, '*', unpack(entry))
end

local function fire(due, name, member, time)
  local hash = hashes .. member
  local fields = read('HMGET', hash, 'id', 'key', 'due', 'traceparent', 'data', 'dataKey')
  if not (fields and fields[1] and fields[3]) then
    local reason = fields and 'the deadline of this member is lost' or wrong_type('hash', hash, member).err
    local what = 'due:' .. name .. ' ' .. member
    return bury(letters, what, reason, function() return redis.call('ZREM', due, member) == 1 end) and 'corrupt' or 'already'
  end
  record_event(name, fields)
  redis.call('ZREM', due, member)
  redis.call('UNLINK', hash)
  redis.call('HSET', hash, 'fired', fields[1])
  redis.call('PEXPIRE', hash, known_for)
  return math.max(0, now - tonumber(fields[3]))
end

-- Fires what is due of a name. Returns when the next one is due; nil when none waits.
local function fire_some(name, count)
  local due = prefix .. 'due:' .. name
  local found = read('ZRANGEBYSCORE', due, '-inf', digits(now), 'WITHSCORES', 'LIMIT', 0, count)
  if not found then
    local remove = function() return redis.call('ZREM', names, name) == 1 end
    note_outcome('due:' .. name, now, bury(letters, 'due:' .. name, wrong_type('zset', due).err, remove) and 'corrupt' or 'already')
    return nil
  end
  for i = 1, #found, 2 do note_outcome(found[i], found[i + 1], fire(due, name, found[i], found[i + 1])) end
  local next_one = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  if next_one[2] then redis.call('ZADD', names, next_one[2], name) else redis.call('ZREM', names, name) end
  return tonumber(next_one[2])
end

-- The names that somebody handles, which are due, and when the first of the others is.
local function look()
  local due, later = {}, nil
  local all = read_typed('zset', 'ZRANGE', names, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local name, time = all[i], tonumber(all[i + 1])
    if handlers[name] or redis.call('EXISTS', events .. ':wanted:broadcast:' .. name) == 1 then
      if time <= now then due[#due + 1] = name else later = math.min(later or time, time) end
    end
  end
  return due, later
end

-- The position of the first event that one of the groups has to handle; nil when there is none.
local function first_unhandled(groups)
  local first
  for name, group in pairs(groups) do
    local pending = redis.call('XPENDING', events, name, '-', '+', 1)[1]
    local unread = redis.call('XRANGE', events, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
    -- What is pending comes before what is unread.
    local own = pending and pending[1] or unread and unread[1]
    if own and (not first or before(own, first)) then first = own end
  end
  return first
end

-- Removes the oldest events that wait for no group, and for none that will be there. Whether there were any.
local function drop_handled(count)
  local groups = groups_of(events)
  if not next(groups) and next(handlers) then return false end
  local first = first_unhandled(groups)
  local oldest = redis.call('XRANGE', events, '-', first and '(' .. first or '+', 'COUNT', count)
  if not oldest[1] then return false end
  local last = oldest[#oldest][1]
  local ms, sequence = parts(last)
  redis.call('XTRIM', events, 'MINID', digits(ms) .. '-' .. digits(sequence + 1))
  redis.call('SET', trimmed, last)
  return true
end

local waiting, most_waiting = read_typed('stream', 'XLEN', events), tonumber(ARGV[3])
read_typed('stream', 'XLEN', dead)
local due, earliest = look()
if #due > 0 and waiting >= most_waiting then
  read_typed('string', 'GET', trimmed)
  -- A few at a time: `events.maxLength` may be much lower than before.
  if not drop_handled(math.min(waiting - most_waiting + most, 2 * most)) then return { now, 1000, 1 } end
end
local share = math.max(1, math.floor(most / math.max(1, #due)))
for _, name in ipairs(due) do
  local time = fire_some(name, share)
  if time then earliest = math.min(earliest or time, time) end
end
if #reply > 3 then signal(events, 'events') end
if earliest then reply[2] = math.max(0, earliest - now) end
return reply
