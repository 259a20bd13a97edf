// Mistakes in how sessions are kept in Redis.
const byContract = (test) => ({
  spec: 'redis-session.contract.spec.ts',
  test,
});
const byEpoch = (test) => ({ spec: 'every-session.spec.ts', test });
const byIndex = (test) => ({ spec: 'session-index.spec.ts', test });
const byScripts = (test) => ({ spec: 'session.scripts.spec.ts', test });

const script = (name, mutants) => mutants.map((mutant) => ({ in: name, ...mutant }));

const touchSession = script('touch-session', [
  {
    mistake: 'An access to what has data counts, without a look at the shadow',
    in: 'includes/live',
    code: "if text ~= '' then",
    instead: `if text == false and redis.call('EXISTS', key) == 1 then
  redis.call('SET', shadow, '')
elseif text ~= '' then`,
    killedBy: byContract('touch is gone for deleted, expired and unsaved sessions'),
  },
  {
    mistake: 'The time of an access is written before anybody looks whether there is a session',
    in: 'includes/live',
    code: `local id, key, shadow, seals = ARGV[2], KEYS[3], KEYS[4], nil`,
    instead: `local id, key, shadow, seals = ARGV[2], KEYS[3], KEYS[4], nil
redis.call('HSET', key, 'lastAccessedTime', 1)`,
    killedBy: byScripts('touch-session creates nothing when there is no session'),
  },
  {
    mistake: 'An access puts off the absolute end',
    code: `tonumber(fields[2]), tonumber(fields[3])`,
    instead: `tonumber(fields[2]), nil`,
    killedBy: byContract('absolute timeout is not postponed by a touch'),
  },
]);

const createSession = script('create-session', [
  {
    mistake: 'A session is created under an id that is taken',
    code: `if redis.call('EXISTS', key, shadow, KEYS[5]) > 0 then return { 'collision' } end`,
    instead: ``,
    killedBy: byContract(
      'creation draws another id when the first is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'Of the ids that a request presents, only the first is looked at for a change of id',
    code: `unpack(KEYS, 8)`,
    instead: `KEYS[8]`,
    killedBy: byContract(
      'creation refuses a late request that presents an id from just before a rotation, whatever else it presents',
    ),
  },
]);

const saveSession = script('save-session', [
  {
    mistake: 'A save does not look whether the session is alive',
    in: 'includes/live',
    code: `if text ~= '' then`,
    instead: `if text == false and redis.call('EXISTS', key) == 1 then
  redis.call('SET', shadow, '')
elseif text ~= '' then`,
    killedBy: byContract('saving does not restore a deleted session'),
  },
  {
    mistake: 'A save changes the index before it compares',
    code: `if condition ~= 'any' and not clears then`,
    instead: `for i = 16, first_removed - 1, 2 do redis.call('ZADD', prefix .. 'index:' .. ARGV[i] .. ':' .. ARGV[i + 1], 1, id) end
if condition ~= 'any' and not clears then`,
    killedBy: byContract(
      'index is not changed by an update that is a conflict, nor by a rotation to an id that is taken',
    ),
  },
  {
    mistake: 'A save puts off the absolute end',
    code: `tonumber(fields[1]), tonumber(fields[3])`,
    instead: `tonumber(fields[1]), nil`,
    killedBy: byContract('absolute timeout is not postponed by a save'),
  },
  {
    mistake: 'An absolute end that is set later counts from then',
    code: `local start = now if not signs_in then`,
    instead: `local start = now if false then`,
    killedBy: byContract('absolute timeout counts from the creation when it is set later, also without an access'),
  },
  {
    mistake: 'A save renews a session that is to be kept idle',
    code: `ARGV[9] == '1'`,
    instead: `false`,
    killedBy: byContract('saving does not renew a session that the request keeps idle'),
  },
  {
    mistake: 'An update of an attribute does not compare',
    code: `if condition ~= 'any' and not clears then`,
    instead: `if false then`,
    killedBy: byContract('attribute update keeps every change of many concurrent requests'),
  },
  {
    mistake: 'An update of an attribute takes the text that it writes for its own of before',
    code: `redis.sha1hex(current) == ARGV[12]`,
    instead: `(redis.sha1hex(current) == ARGV[12] or current == ARGV[#ARGV])`,
    killedBy: byContract('attribute update is a conflict also when another request has written the same text'),
  },
  {
    mistake: 'A late update is told what the session holds since its change of id',
    code: `if reply == 'forwarded' then return { 'gone' } end`,
    instead: ``,
    killedBy: byContract('rotation returns to requests that loaded the old id nothing saved since'),
  },
  {
    mistake: 'A late change of id is forwarded to the session after the login',
    code: `if rotates or changes_index or new_timeout`,
    instead: `if changes_index or new_timeout`,
    killedBy: byContract('rotation refuses completely a forwarded save that sets another id'),
  },
  {
    mistake: 'A late principal is forwarded to the session after the login',
    code: `if rotates or changes_index or new_timeout`,
    instead: `if rotates or new_timeout`,
    killedBy: byContract('rotation refuses completely a forwarded save that sets a principal'),
  },
  {
    mistake: 'A change of id that is sent twice does not find that it was done',
    code: "if rotates and redis.call('GET', KEYS[5]) == mark then",
    instead: 'if false then',
    killedBy: byContract('rotation happens once when it is sent twice because its reply was lost'),
  },
  {
    mistake: 'A change of id takes an id that somebody has',
    code: `if rotates and redis.call('EXISTS', KEYS[6], KEYS[7], unpack(KEYS, 8)) > 0 then return { 'collision' } end`,
    instead: ``,
    beyondModel: 'its ids are never taken',
    killedBy: byContract(
      'rotation draws another id when the new one is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'A change of id forgets the indexes',
    code: `for _, entry in ipairs(joining) do redis.call('ZADD', entry.set, score, new_id) end`,
    instead: `for _, entry in ipairs(joining) do redis.call('ZADD', entry.set, score, id) end`,
    killedBy: byContract('index follows a session through a rotation'),
  },
  {
    mistake: 'A change of id forgets the bucket',
    code: `redis.call('SADD', bucket_prefix .. bucket, 'expires:' .. new_id)`,
    instead: ``,
    killedBy: byContract('events record the expiry of a rotated session once, under the new id'),
  },
  {
    mistake: 'A change of id puts a session without an end into a bucket',
    code: `if bucket and (sets_end or is_in == 1) then`,
    instead: `bucket = bucket or string.format('%.0f', math.floor(now / 60000 + 1) * 60000)
  redis.call('ZADD', bucket_list, bucket, bucket)
  if true then`,
    beyondModel: 'it looks into no bucket',
    killedBy: byScripts('save-session moves a session without an end into no bucket'),
  },
  {
    mistake: 'A change of id trusts the recorded bucket',
    code: 'if bucket and (sets_end or is_in == 1) then',
    instead: 'if bucket then',
    beyondModel: 'it has no stray keys',
    killedBy: {
      spec: 'stray-keys.spec.ts',
      test: 'save-session with a new id, kept idle does not look at a stray bucket, which it does not write',
    },
  },
  {
    mistake: 'A change of id leaves no mark for late requests',
    code: `redis.call('SET', KEYS[5], mark, 'PX', 60000)`,
    instead: ``,
    killedBy: byContract('rotation forwards attribute changes and touches of requests that loaded the old id'),
  },
  {
    mistake: 'The mark of a change of id stays for ever',
    code: `redis.call('SET', KEYS[5], mark, 'PX', 60000)`,
    instead: `redis.call('SET', KEYS[5], mark)`,
    killedBy: byContract('rotation forwards for 60 s, and no longer'),
  },
  {
    mistake: 'A late save reaches the session that was regenerated',
    code: `mark = clears and 'cleared:' .. new_id or signs_in`,
    instead: `mark = signs_in`,
    beyondModel: 'it regenerates nothing',
    killedBy: byContract('rotation that regenerates forwards nothing of the old id'),
  },
  {
    mistake: 'A session that is regenerated keeps what the request did not know of',
    in: 'includes/stale-attributes',
    code: `(clears or not is_kept(field))`,
    instead: `(not clears and not is_kept(field))`,
    beyondModel: 'it regenerates nothing',
    killedBy: byContract(
      'rotation that regenerates removes all attributes, also those of requests that it does not know of',
    ),
  },
  {
    mistake: 'A sign-in keeps what is bound to the visitor',
    code: 'if clears or signs_in then',
    instead: 'if clears then',
    killedBy: byContract(
      'a sign-in removes what is bound to the visitor, also what it does not know of, unless it sets that',
    ),
  },
  {
    mistake: 'A sign-in removes what it sets itself',
    in: 'save-session',
    code: "redis.call('SET', KEYS[5], mark, 'PX', 60000)\nend\nreturn { reply, signs_in and now or nil }",
    instead: `redis.call('SET', KEYS[5], mark, 'PX', 60000)
end
for i = 1, stale and #stale or 0 do redis.call('HDEL', rotates and KEYS[6] or key, stale[i]) end
return { reply, signs_in and now or nil }`,
    beyondModel: 'it has no attributes of visitors',
    killedBy: byContract(
      'a sign-in removes what is bound to the visitor, also what it does not know of, unless it sets that',
    ),
  },
  {
    mistake: 'A sign-in keeps more than it is told to',
    in: 'includes/kept',
    code: 'if lists.only then return function(field) return named[field] end end',
    instead: 'if lists.only then return function() return true end end',
    killedBy: byContract('a sign-in keeps exactly the attributes that it is told to'),
  },
  {
    mistake: 'A late save plants what the sign-in has removed',
    code: `signs_in and new_id .. ' ' .. kept_rule or new_id`,
    instead: 'new_id',
    killedBy: byContract('a sign-in leaves out of late saves what it has not kept, and saves the rest'),
  },
  {
    mistake: 'A late save removes what was drawn after the sign-in',
    in: 'includes/unsealed',
    code: 'if is_kept(ARGV[i]) then removed = removed + 1',
    instead: 'if true then removed = removed + 1',
    killedBy: byContract('a sign-in leaves out of late saves what it has not kept, and saves the rest'),
  },
  {
    mistake: 'A late save is told by a comparison what was drawn after the sign-in',
    in: 'includes/unsealed',
    code: "if condition ~= 'any' and not is_kept(ARGV[11]) then condition = 'any' end",
    instead: '',
    killedBy: byContract('a sign-in leaves out of late saves what it has not kept, and saves the rest'),
  },
  {
    mistake: 'Of several sign-ins, only the last one keeps late saves out',
    in: 'includes/live',
    code: 'seals = seals or {}',
    instead: 'seals = {}',
    killedBy: byContract('a sign-in leaves its rule in force across later sign-ins'),
  },
  {
    mistake: 'The absolute timeout counts from the creation although somebody signed in',
    code: 'if not signs_in then local times',
    instead: 'if true then local times',
    killedBy: byContract('a sign-in lets the absolute timeout count from it'),
  },
  {
    mistake: 'The time of a sign-in outlives its principal',
    code: "elseif kept_rule == 'none' and reply == 'saved' then",
    instead: 'elseif false then',
    killedBy: byContract('a sign-in is forgotten with its principal, and the session keeps its end'),
  },
  {
    mistake: 'A new session has no time of its sign-in',
    in: 'includes/create',
    code: 'if signs_in then',
    instead: 'if false then',
    killedBy: byContract('a sign-in of a new session stores the principal and the time, by the clock of the store'),
  },
  {
    mistake: 'A regeneration that is sent twice does not find that it was done',
    code: `redis.call('EXISTS', KEYS[7]) == 1 and 'saved' or 'gone'`,
    instead: `'gone'`,
    beyondModel: 'it regenerates nothing',
    killedBy: byContract('rotation that regenerates happens once when it is sent twice because its reply was lost'),
  },
  {
    mistake: 'An interval of 0 is reported as an expiry',
    code: `if new_interval == 0 then how = 'deleted' end`,
    instead: ``,
    killedBy: byContract('events record a deletion by an interval of 0 once, with the data of the session'),
  },
  {
    mistake: 'A save begins to write before it knows that a key it needs is foreign',
    code: `local bucket, is_in, due, moves = fields[4], nil, nil, nil`,
    instead: `local bucket, is_in, due, moves = fields[4], nil, nil, nil
redis.call('HSET', key, unpack(ARGV, first_attribute))`,
    beyondModel: 'it has no stray keys',
    killedBy: byScripts('save-session writes nothing when a key it needs has another type'),
  },
]);

const deleteSession = script('delete-session', [
  {
    mistake: 'Nobody can log out when Redis is out of memory',
    code: '#!lua flags=allow-oom',
    instead: '#!lua',
    beyondModel: 'it has memory enough',
    killedBy: byScripts(
      'claim-expired claims, touches and deletes when Redis is out of memory, but does not create or save',
    ),
  },
]);

const claimExpired = script('includes/claim', [
  {
    mistake: 'A sweep takes sessions out of their indexes before it looks whether they are alive',
    code: `local has_data = fields[1] or fields[2] or redis.call('EXISTS', key) == 1`,
    instead: `local has_data = fields[1] or fields[2] or redis.call('EXISTS', key) == 1
  for _, entry in ipairs(fields[3] and recorded_entries(fields[3]) or {}) do redis.call('ZREM', entry.set, id) end`,
    killedBy: byContract('index has no ended session, however it ended'),
  },
  {
    mistake: 'A claim does not look whether the end was recorded',
    code: `if fields[2] then`,
    instead: `if false then`,
    killedBy: byScripts('claim-expired records an end once, with the data still there'),
  },
  {
    mistake: 'What has lost its data is reported by everybody who looks, and not by who takes the member',
    code: `if not remove_member(member, is_present) then return 'already' end
    record(`,
    instead: `remove_member(member, is_present)
    record(`,
    killedBy: byScripts('claim-expired reports a session without data once, by the caller that removes its member'),
  },
  {
    mistake: 'A sweep takes a session that is alive out of its bucket, and puts it into no other',
    code: `if is_stray then return end`,
    instead: `if true then return end`,
    killedBy: byContract('events record no expiry before the end of a session, also when it was renewed since'),
  },
]);

const ends = [
  {
    mistake: 'Every script sets the shadow, before it looks whether it has gone',
    in: 'includes/live',
    code: "local text = redis.pcall('GET', shadow)",
    instead: `redis.call('SET', shadow, '', 'KEEPTTL')
local text = redis.pcall('GET', shadow)`,
    killedBy: byContract('saving does not restore an expired session before the expiry is noticed'),
  },
  {
    mistake: 'Late requests are led over a single change of id',
    in: 'includes/live',
    code: 'for _ = 1, 15 do',
    instead: 'for _ = 1, 1 do',
    killedBy: byContract('rotation forwards over several rotations'),
  },
  {
    mistake: 'A shadow key without its session hash stays',
    in: 'includes/incomplete',
    code: "redis.call('DEL', shadow)",
    instead: '',
    beyondModel: 'it loses no keys',
    killedBy: byScripts('touch-session deletes a shadow key that has lost its session hash'),
  },
  {
    mistake: 'An end is not marked in the data',
    in: 'includes/ended',
    code: "'ended', '\"' .. how .. '\"', 'maxInactiveInterval', '0')",
    instead: "'maxInactiveInterval', '0')",
    killedBy: byScripts('claim-expired records an end once, with the data still there'),
  },
  {
    mistake: 'A deletion is recorded as an expiry',
    in: 'includes/end',
    code: "'type', how",
    instead: "'type', 'expired'",
    killedBy: byContract('events record a deletion by deleteById() once, with the data of the session'),
  },
  {
    mistake: 'An end leaves the shadow',
    in: 'includes/end',
    code: "redis.call('DEL', shadow)",
    instead: '',
    killedBy: byContract('deletion ends the session for every node, and no other session'),
  },
  {
    mistake: 'An end leaves the member in its bucket',
    in: 'includes/end',
    code: 'if size > 0 and',
    instead: 'if false and',
    killedBy: byScripts('delete-session ends the session once, and keeps its data for the retention'),
  },
  {
    mistake: 'An end leaves the entries of the indexes',
    in: 'includes/end',
    code: "redis.call('ZREM', entry.set, id)",
    instead: '',
    killedBy: byScripts('delete-session ends the session once, and keeps its data for the retention'),
  },
  {
    mistake: 'An end of many is held up by one that a stray key keeps alive',
    in: 'end-sessions',
    code: 'table.insert(foreign, id)',
    instead: 'error(problem)',
    beyondModel: 'it has no stray keys',
    killedBy: byIndex(
      'the end of all sessions of an index is not held up by a session that a stray key keeps alive, and fails afterwards without its id',
    ),
  },
  {
    mistake: 'An end of many ends who signs in meanwhile',
    in: 'end-sessions',
    code: "'-inf', latest, 'BYSCORE'",
    instead: "'-inf', '+inf', 'BYSCORE'",
    beyondModel: 'its steps are whole calls',
    killedBy: byIndex(
      'the end of all sessions of an index leaves who signs in after the call, and no session that was rotated',
    ),
  },
  {
    mistake: 'An end of many leaves in the index what has expired',
    in: 'end-sessions',
    code: "if left[1] then redis.call('ZREM', KEYS[3], unpack(left)) end",
    instead: '',
    beyondModel: 'it looks at no index',
    killedBy: byIndex(
      'the end of all sessions of an index does not end again what has expired, whose claim still records that',
    ),
  },
  {
    mistake: 'A listing takes ids out of the index that only wait for their claim',
    in: 'list-sessions',
    code: "elseif redis.call('EXISTS', key) == 0 then",
    instead: 'else',
    beyondModel: 'it looks at no index',
    killedBy: byIndex(
      'a reading of an index removes what a long outage left, and leaves what is over and not yet claimed to its claim',
    ),
  },
  {
    mistake: 'An instance that could not ask for the epoch trusts what it knows',
    in: 'SessionEpochs.isStale',
    code: 'known === undefined || performance.now() - known.askedAt > LEASE',
    instead: 'known === undefined',
    beyondModel: 'it ends no session but by its id',
    killedBy: byContract('revocation ends every session for every node, also one without a principal or an end'),
  },
  {
    mistake: 'The epoch ends who signed in after it',
    in: 'end-older-sessions',
    code: 'math.max(tonumber(times[1]) or 0, tonumber(times[2]) or 0)',
    instead: 'tonumber(times[1]) or 0',
    beyondModel: 'it ends no session but by its id',
    killedBy: byEpoch(
      'sessions that begin in the millisecond of the call end, and those that somebody signs in to later live',
    ),
  },
  {
    mistake: 'The epoch leaves sessions of its own millisecond',
    in: 'end-older-sessions',
    code: 'began <= at',
    instead: 'began < at',
    beyondModel: 'it ends no session but by its id',
    killedBy: byEpoch(
      'sessions that begin in the millisecond of the call end, and those that somebody signs in to later live',
    ),
  },
  {
    mistake: 'The epoch goes back with the clock',
    in: 'raise-epoch',
    code: "math.max(now, tonumber(redis.call('HGET', KEYS[1], 'at')) or 0)",
    instead: 'now',
    beyondModel: 'it ends no session but by its id',
    killedBy: byEpoch('an epoch never goes back with the clock of Redis'),
  },
  {
    mistake: 'The work after an epoch is done although requests may still rotate its sessions',
    in: 'OlderSessionSweeper.#pass',
    code: 'if (isLast) await',
    instead: 'await',
    beyondModel: 'it ends no session but by its id',
    killedBy: byEpoch(
      'the background work looks at the sessions once more when requests that rotate them are over, and is done',
    ),
  },
  {
    mistake: 'A listing does not read again what signed in meanwhile',
    in: 'SessionIndexReader.#walk',
    code: 'after = first.latest;',
    instead: 'return;',
    beyondModel: 'its steps are whole calls',
    killedBy: byIndex('a reading of an index does not miss a session that signs in again meanwhile'),
  },
  {
    mistake: 'An end begins although its event cannot be recorded',
    in: 'includes/end',
    code: "local recorded = redis.pcall('XADD', events, '*', 'type', how, 'session', id, 'at', now)",
    instead: `redis.call('DEL', shadow)
local recorded = redis.pcall('XADD', events, '*', 'type', how, 'session', id, 'at', now)`,
    beyondModel: 'it has no stray keys',
    killedBy: {
      spec: 'stray-keys.spec.ts',
      test: 'delete-session writes nothing when its events stream is foreign, and names that key without an id',
    },
  },
];

const deadlines = [
  {
    mistake: 'The member stands in a bucket that is swept a minute late',
    in: 'includes/buckets',
    code: 'math.floor((ends_at + 60000) / 60000) * 60000',
    instead: 'math.floor((ends_at + 120000) / 60000) * 60000',
    killedBy: byContract('events record an expiry once, with the data of the session'),
  },
  {
    mistake: 'An earlier end leaves the member where it is, too late',
    in: 'includes/check-member',
    code: 'is_in ~= 1 or minute <= now or minute > ends_at + 60000',
    instead: 'is_in ~= 1 or minute <= now',
    killedBy: byContract('events record the expiry of a session whose timeout was shortened'),
  },
  {
    mistake: 'A bucket has a time to live',
    in: 'includes/join',
    code: "if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end",
    instead: `if is_new then redis.call('ZADD', bucket_list, bucket, bucket) end
  redis.call('PEXPIREAT', bucket_prefix .. bucket, bucket + 300000)`,
    killedBy: byScripts('create-session leaves exactly the documented keys, types, fields and times to live'),
  },
  {
    mistake: 'A minute whose bucket is empty stays in the list',
    in: 'includes/claim',
    code: "if redis.call('EXISTS', bucket_prefix .. bucket) == 0 then redis.call('ZREM', bucket_list, bucket) end",
    instead: '',
    killedBy: byScripts('claim-expired removes a minute without a bucket from the bucket list'),
  },
  {
    mistake: 'The data goes together with the session',
    in: 'includes/set-end',
    code: "redis.call('PEXPIREAT', key, ends_at + ARGV[3])",
    instead: "redis.call('PEXPIREAT', key, ends_at)",
    killedBy: byScripts('save-session moves the bucket member for an earlier end only'),
  },
  {
    mistake: 'A session that is never to end keeps the end that it had',
    in: 'includes/set-end',
    code: "redis.call('PERSIST', shadow)",
    instead: '',
    killedBy: byContract('idle timeout never ends the session when it is negative, until it is set again'),
  },
  {
    mistake: 'The time of the last access goes back with the clock',
    in: 'save-session',
    code: 'if not keeps_idle and (not accessed or accessed < now) then',
    instead: 'if not keeps_idle then',
    beyondModel: 'its clock does not go back',
    killedBy: byContract('saving never sets the time of the last access back when the clock steps back'),
  },
  {
    mistake: 'A member that its bucket has lost is never put back',
    in: 'includes/check-member',
    code: "redis.pcall('SISMEMBER', bucket_prefix .. bucket, 'expires:' .. id)",
    instead: '1',
    beyondModel: 'its buckets lose nothing',
    killedBy: byScripts('touch-session puts a session back that its bucket has lost'),
  },
];

const repository = [
  {
    mistake: 'A load does not look at the shadow',
    code: 'ttl === NO_KEY ? undefined : toLiveRecord(id, fields, ttl)',
    instead: 'toLiveRecord(id, fields, ttl)',
    killedBy: byContract('loading finds a session until its end, and no longer even before the expiry is noticed'),
  },
  {
    mistake: 'A load is forwarded to the session after the login',
    in: 'RedisSessionRepository.#loadIn',
    code: 'return Promise.all([...ids.flatMap((id) => readSession(client, keys, id, only)), ...asked]);',
    instead: `return Promise.all(
        ids.map(async (id) => (await client.get(keys.forwardingMark(id))) ?? id),
      ).then((current) => Promise.all([...current.flatMap((id) => readSession(client, keys, id, only)), ...asked]));`,
    killedBy: byContract('rotation ends the old id for loading at once'),
  },
  {
    mistake: 'A change of id is not looked for in other partitions',
    code: "if (marks.some((found) => found > 0)) return { outcome: 'gone' };",
    instead: '',
    beyondModel: 'it is asked with one partition',
    killedBy: {
      spec: 'redis-session.repository.spec.ts',
      test: 'keeps a session in its partition across changes of id, and creates none for a late request',
    },
  },
  {
    mistake: 'A save that only removes attributes is sent as if it only set some',
    in: 'onlySetsAttributes',
    code: 'if (text === null) return false;',
    instead: '',
    killedBy: {
      spec: 'session.budgets.spec.ts',
      test: 'runs no more commands than these for a save that removes attributes',
    },
  },
  {
    mistake: 'A creation goes on after it has failed',
    in: 'RedisSessionRepository.#create',
    code: 'proceed();',
    instead: '',
    beyondModel: 'its store replies in time',
    killedBy: {
      spec: 'redis-session.repository.spec.ts',
      test: 'the Redis repository creates no session after it has reported a failure',
    },
  },
  {
    mistake: 'An epoch that was asked for earlier replaces a newer one',
    in: 'SessionEpochs.ask',
    code: 'if ((known?.askedAt ?? 0) > askedAt) return;',
    instead: 'void known;',
    killedBy: {
      spec: 'session-epochs.listener.spec.ts',
      test: 'an answer that comes after that of a later question says nothing, each time',
    },
  },
  {
    mistake: 'A partition whose epoch could not be asked for is never asked again',
    in: 'SessionEpochsListener.#ask',
    code: '} catch { return; }',
    instead: '} catch { return void this.#asked.set(keys, {}); }',
    killedBy: {
      spec: 'session-epochs.listener.spec.ts',
      test: 'a partition is asked again after a question that failed, and until its sessions are ended, beside others',
    },
  },
].map((mutant) => ({ in: 'RedisSessionRepository', ...mutant }));

export const redisStore = [
  ...touchSession,
  ...createSession,
  ...saveSession,
  ...deleteSession,
  ...claimExpired,
  ...ends,
  ...deadlines,
  ...repository,
].map((mutant) => ({ store: 'Redis', ...mutant }));
