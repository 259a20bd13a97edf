// Mistakes in how sessions are kept in Redis.
const byContract = (test) => ({
  spec: 'redis-session.contract.spec.ts',
  test,
});
const byScripts = (test) => ({ spec: 'session.scripts.spec.ts', test });

const script = (name, mutants) => mutants.map((mutant) => ({ in: name, ...mutant }));

const touchSession = script('touch-session', [
  {
    mistake: 'An access to what has data counts, without a look at the shadow',
    code: "if not session then return { 'gone' } end",
    instead: `if not session and redis.call('EXISTS', KEYS[3]) == 0 then return { 'gone' } end
if not session then
  session = { id = ARGV[4], key = KEYS[3], shadow = KEYS[4] }
  redis.call('SET', session.shadow, '')
end`,
    killedBy: byContract('touch is gone for deleted, expired and unsaved sessions'),
  },
  {
    mistake: 'The time of an access is written before anybody looks whether there is a session',
    code: 'local session = live_session(',
    instead: `redis.call('HSET', KEYS[3], 'lastAccessedTime', integer(now_in_ms()))
local session = live_session(`,
    killedBy: byScripts('touch-session creates nothing when there is no session'),
  },
  {
    mistake: 'An access puts off the absolute end',
    code: 'end_since(now, times.interval, times.absolute_expiry)',
    instead: 'end_since(now, times.interval)',
    killedBy: byContract('absolute timeout is not postponed by a touch'),
  },
]);

const createSession = script('create-session', [
  {
    mistake: 'A session is created under an id that is taken',
    code: "if redis.call('EXISTS', session.key, session.shadow, KEYS[5]) > 0 then return { 'collision' } end",
    instead: '',
    killedBy: byContract(
      'creation draws another id when the first is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'Of the ids that a request presents, only the first is looked at for a change of id',
    code: 'for i = 6, #KEYS do',
    instead: 'for i = 6, math.min(6, #KEYS) do',
    killedBy: byContract(
      'creation refuses a late request that presents an id from just before a rotation, whatever else it presents',
    ),
  },
]);

const saveSession = script('save-session', [
  {
    mistake: 'A save does not look whether the session is alive',
    code: "if not session then return { 'gone' } end",
    instead: `session = session or redis.call('EXISTS', KEYS[3]) == 1 and { id = id, key = KEYS[3], shadow = KEYS[4] }
if not session then return { 'gone' } end`,
    killedBy: byContract('saving does not restore a deleted session'),
  },
  {
    mistake: 'A save changes the index before it compares',
    code: 'local times = recorded_times(session)',
    instead: `write_indexes(session, indexes)
local times = recorded_times(session)`,
    killedBy: byContract(
      'index is not changed by an update that is a conflict, nor by a rotation to an id that is taken',
    ),
  },
  {
    mistake: 'A save puts off the absolute end',
    code: 'end_since(accessed, times.interval, times.absolute_expiry)',
    instead: 'end_since(accessed, times.interval)',
    killedBy: byContract('absolute timeout is not postponed by a save'),
  },
  {
    mistake: 'An absolute end that is set later counts from then',
    code: 'absolute_end(times.creation, absolute_timeout)',
    instead: 'absolute_end(now, absolute_timeout)',
    killedBy: byContract('absolute timeout counts from the creation when it is set later, also without an access'),
  },
  {
    mistake: 'A save renews a session that is to be kept idle',
    code: "local keeps_idle = ARGV[8] == '1'",
    instead: 'local keeps_idle = false',
    killedBy: byContract('saving does not renew a session that the request keeps idle'),
  },
  {
    mistake: 'An update of an attribute does not compare',
    code: "if expectation ~= 'any' then",
    instead: 'if false then',
    killedBy: byContract('attribute update keeps every change of many concurrent requests'),
  },
  {
    mistake: 'An update of an attribute takes the text that it writes for its own of before',
    code: "expectation == 'text' and current == expected_text",
    instead: "expectation == 'text' and (current == expected_text or attributes[1] and current == attributes[1][2])",
    killedBy: byContract('attribute update is a conflict also when another request has written the same text'),
  },
  {
    mistake: 'A late update is told what the session holds since its change of id',
    code: "    if is_forwarded then return { 'gone' } end\n",
    instead: '',
    killedBy: byContract('rotation returns to requests that loaded the old id nothing saved since'),
  },
  {
    mistake: 'A late change of id is forwarded to the session after the login',
    code: 'if rotates or #indexes > 0 or absolute_timeout',
    instead: 'if #indexes > 0 or absolute_timeout',
    killedBy: byContract('rotation refuses completely a forwarded save that sets another id'),
  },
  {
    mistake: 'A late principal is forwarded to the session after the login',
    code: 'if rotates or #indexes > 0 or absolute_timeout',
    instead: 'if rotates or absolute_timeout',
    killedBy: byContract('rotation refuses completely a forwarded save that sets a principal'),
  },
  {
    mistake: 'A change of id that is sent twice does not find that it was done',
    code: "if rotates and redis.call('GET', KEYS[5]) == new_id then return { 'saved' } end",
    instead: '',
    killedBy: byContract('rotation happens once when it is sent twice because its reply was lost'),
  },
  {
    mistake: 'A change of id takes an id that somebody has',
    code: "if rotates and redis.call('EXISTS', KEYS[6], KEYS[7], KEYS[8]) > 0 then return { 'collision' } end",
    instead: '',
    beyondModel: 'its ids are never taken',
    killedBy: byContract(
      'rotation draws another id when the new one is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'A change of id forgets the indexes',
    code: "    redis.call('SADD', index_key(entry[1], entry[2]), target.id)\n",
    instead: '',
    killedBy: byContract('index follows a session through a rotation'),
  },
  {
    mistake: 'A change of id forgets the bucket',
    code: '  if bucket then join_bucket(target, bucket) end\n',
    instead: '',
    killedBy: byContract('events record the expiry of a rotated session once, under the new id'),
  },
  {
    mistake: 'A change of id puts a session without an end into a bucket',
    code: '  if bucket then join_bucket(target, bucket) end\n',
    instead: '  join_bucket(target, bucket or integer(now + 60000))\n',
    beyondModel: 'it looks into no bucket',
    killedBy: byScripts('save-session moves a session without an end into no bucket'),
  },
  {
    mistake: 'A change of id leaves no mark for late requests',
    code: "  redis.call('SET', KEYS[5], target.id, 'PX', 60000)\n",
    instead: '',
    killedBy: byContract('rotation forwards attribute changes and touches of requests that loaded the old id'),
  },
  {
    mistake: 'The mark of a change of id stays for ever',
    code: "redis.call('SET', KEYS[5], target.id, 'PX', 60000)",
    instead: "redis.call('SET', KEYS[5], target.id)",
    killedBy: byContract('rotation forwards for 60 s, and no longer'),
  },
  {
    mistake: 'An interval of 0 is reported as an expiry',
    code: "  if interval == 0 then how = 'deleted' end\n",
    instead: '',
    killedBy: byContract('events record a deletion by an interval of 0 once, with the data of the session'),
  },
  {
    mistake: 'A save begins to write before it knows that a key it needs is foreign',
    code: 'local problem = wrong_type(shared_keys()) or wrong_type(written)',
    instead: `write_attributes(session, attributes)
local problem = wrong_type(shared_keys()) or wrong_type(written)`,
    beyondModel: 'it has no foreign keys',
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

const claimExpired = script('claim-expired', [
  {
    mistake: 'A sweep takes sessions out of their indexes before it looks whether they are alive',
    code: "local has_data = redis.call('EXISTS', session.key) == 1",
    instead: `local has_data = redis.call('EXISTS', session.key) == 1
  for _, entry in ipairs(has_data and memberships(session) or {}) do
    redis.call('SREM', index_key(entry[1], entry[2]), session.id)
  end`,
    killedBy: byContract('index has no ended session, however it ended'),
  },
  {
    mistake: 'A claim does not look whether the end was recorded',
    code: "if redis.call('HEXISTS', session.key, 'ended') == 0 then",
    instead: 'if true then',
    killedBy: byScripts('claim-expired records an end once, with the data still there'),
  },
  {
    mistake: 'What has lost its data is reported by everybody who looks, and not by who takes the member',
    code: "if not remove_member(member) then return 'already' end\n    record(",
    instead: 'remove_member(member)\n    record(',
    killedBy: byScripts('claim-expired reports a session without data once, by the caller that removes its member'),
  },
  {
    mistake: 'A sweep takes a session that is alive out of its bucket, and puts it into no other',
    code: 'if right then join_bucket(session, right) else',
    instead: 'if not right then',
    killedBy: byContract('events record no expiry before the end of a session, also when it was renewed since'),
  },
]);

const ends = script('includes/session', [
  {
    mistake: 'Every script sets the shadow, before it looks whether it has gone',
    code: "    if redis.call('EXISTS', session.shadow) == 1 then\n",
    instead: `    redis.call('SET', session.shadow, '', 'KEEPTTL')
    if redis.call('EXISTS', session.shadow) == 1 then
`,
    killedBy: byContract('saving does not restore an expired session before the expiry is noticed'),
  },
  {
    mistake: 'Late requests are led over a single change of id',
    code: 'for _ = 1, 16 do',
    instead: 'for _ = 1, 2 do',
    killedBy: byContract('rotation forwards over several rotations'),
  },
  {
    mistake: 'An end is not marked in the data',
    code: "'ended', cjson.encode(how), 'maxInactiveInterval', 0)",
    instead: "'maxInactiveInterval', 0)",
    killedBy: byScripts('claim-expired records an end once, with the data still there'),
  },
  {
    mistake: 'A deletion is not recorded',
    code: '  record(how, session.id, now)\n',
    instead: "  if how ~= 'deleted' then record(how, session.id, now) end\n",
    killedBy: byContract('events record a deletion by deleteById() once, with the data of the session'),
  },
  {
    mistake: 'An end leaves the shadow',
    code: "  leave_bucket(session)\n  redis.call('DEL', session.shadow)\n",
    instead: '  leave_bucket(session)\n',
    killedBy: byContract('deletion ends the session for every node, and no other session'),
  },
  {
    mistake: 'An end leaves the member in its bucket',
    code: "  leave_bucket(session)\n  redis.call('DEL', session.shadow)\n",
    instead: "  redis.call('DEL', session.shadow)\n",
    killedBy: byScripts('delete-session ends the session once, and keeps its data for the retention'),
  },
  {
    mistake: 'An end leaves the entries of the indexes',
    code: "    redis.call('SREM', index_key(entry[1], entry[2]), session.id)\n",
    instead: '',
    killedBy: byScripts('delete-session ends the session once, and keeps its data for the retention'),
  },
]);

const deadlines = script('includes/expiration', [
  {
    mistake: 'The member stands in a bucket that is swept a minute late',
    code: 'integer(math.floor((ends_at + 60000) / 60000) * 60000)',
    instead: 'integer(math.floor((ends_at + 120000) / 60000) * 60000)',
    killedBy: byContract('events record an expiry once, with the data of the session'),
  },
  {
    mistake: 'An earlier end leaves the member where it is, too late',
    code: 'if standing and standing > now and standing <= tonumber(new_end.bucket) then return end',
    instead: 'if standing and standing > now then return end',
    killedBy: byContract('events record the expiry of a session whose timeout was shortened'),
  },
  {
    mistake: 'A bucket has a time to live',
    code: "redis.call('ZADD', bucket_list, minute, minute)",
    instead: `redis.call('ZADD', bucket_list, minute, minute)
  redis.call('PEXPIREAT', bucket_key(minute), integer(tonumber(minute) + grace))`,
    killedBy: byScripts('create-session leaves exactly the documented keys, types, fields and times to live'),
  },
  {
    mistake: 'A minute whose bucket is empty stays in the list',
    code: "if redis.call('EXISTS', bucket_key(minute)) == 0 then redis.call('ZREM', bucket_list, minute) end",
    instead: '',
    killedBy: byScripts('claim-expired removes a minute without a bucket from the bucket list'),
  },
  {
    mistake: 'The data goes together with the session',
    code: "redis.call('PEXPIREAT', session.key, integer(new_end.at + grace))",
    instead: "redis.call('PEXPIREAT', session.key, integer(new_end.at))",
    killedBy: byContract('events record an expiry once, with the data of the session'),
  },
  {
    mistake: 'A session that is never to end keeps the end that it had',
    code: "    redis.call('PERSIST', session.shadow)\n",
    instead: '',
    killedBy: byContract('idle timeout never ends the session when it is negative, until it is set again'),
  },
  {
    mistake: 'The time of the last access goes back with the clock',
    code: 'if not last or last < now then',
    instead: 'if true then',
    beyondModel: 'its clock does not go back',
    killedBy: byContract('saving never sets the time of the last access back when the clock steps back'),
  },
]);

const repository = [
  {
    mistake: 'A load does not look at the shadow',
    code: 'return ttl === NO_KEY ? undefined : toLiveRecord(id, fields, ttl);',
    instead: 'return toLiveRecord(id, fields, ttl);',
    killedBy: byContract('loading finds a session until its end, and no longer even before the expiry is noticed'),
  },
  {
    mistake: 'A load is forwarded to the session after the login',
    in: 'RedisSessionRepository.load',
    code: 'Promise.all(ids.flatMap((id) => this.#read(client, id)))',
    instead: `Promise.all(
        ids.map(async (id) => (await client.get(this.#partitions.of(id).forwardingMark(id))) ?? id),
      ).then((current) => Promise.all(current.flatMap((id) => this.#read(client, id))))`,
    killedBy: byContract('rotation ends the old id for loading at once'),
  },
  {
    mistake: 'A change of id is not looked for in other partitions',
    code: "if (marks.includes(1)) return { outcome: 'gone' };",
    instead: '',
    beyondModel: 'it is asked with one partition',
    killedBy: {
      spec: 'redis-session.repository.spec.ts',
      test: 'keeps a session in its partition across changes of id, and creates none for a late request',
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
