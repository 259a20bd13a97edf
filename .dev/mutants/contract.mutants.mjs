// Mistakes that authors of stores make, in the two stores that there are: the contract has to notice each by itself. They
// are no mistakes of a `store`, since few of them are within the reach of the model-based tests.
const inMemory = (mistake, code, instead, test) => ({
  mistake: `In a store in memory, ${mistake}`,
  in: 'MapSessionStore',
  code,
  instead,
  killedBy: { spec: 'map-session.repository.spec.ts', test },
});

const inEndAfter = (...args) => ({ ...inMemory(...args), in: 'endAfter' });

const inScript = (name, mistake, code, instead, test) => ({
  mistake: `In a store in scripts, ${mistake}`,
  in: name,
  code,
  instead,
  killedBy: { spec: 'redis-session.contract.spec.ts', test },
});

const GET = 'const session = this.#sessions.get(id);';
const TAKEN = "    if (newId !== undefined && this.#isTaken(newId)) return { outcome: 'collision' };\n";
const FOUND = "    if (!session) return { outcome: 'gone' };\n";
const WRITTEN = '    apply(change.attributes, session.attributes);\n    apply(change.indexes, session.indexes);\n';
const LISTED = 'indexes.get(indexName) === value';
const MATCHES = 'if (expected && session.attributes.get(expected.name) !== expected.text) {';
const MARK = '{ id: newId, until: this.clock.now() + FORWARDED_FOR }';

const ids = [
  inMemory(
    'an id of a session that is over is free before anybody has noticed',
    'return this.#sessions.has(id) || this.#forwarding.has(id);',
    'return this.#alive(id) !== undefined || this.#forwarding.has(id);',
    'events record the end of a session whose id is drawn again before its expiry is noticed',
  ),
  inMemory(
    'ids have no case',
    GET,
    'const session = [...this.#sessions.values()].find((each) => each.id.toLowerCase() === id.toLowerCase());',
    'names and values distinguishes ids that differ in case alone',
  ),
  inMemory(
    'ids are compared by what fits into a column of 64 characters',
    GET,
    'const session = [...this.#sessions.values()].find((each) => each.id.slice(0, 64) === id.slice(0, 64));',
    'names and values accepts every well-formed id, and keeps different ids apart',
  ),
];

const changesOfId = [
  inMemory(
    'an expiry forgets the former ids of its session',
    '    this.#sessions.delete(session.id);\n    this.record(new Ended(',
    `    this.#sessions.delete(session.id);
    if (Ended === SessionExpiredEvent) this.#forwarding.clear();
    this.record(new Ended(`,
    'creation refuses such a late request also after the session has ended, however it ended',
  ),
  inMemory(
    'a change of id leaves its mark before it is a conflict',
    "      return { outcome: 'conflict', current",
    `      if (newId !== undefined) this.#forwarding.set(id, ${MARK});
      return { outcome: 'conflict', current`,
    'rotation leaves no trace when it is refused',
  ),
  inMemory(
    'it is looked for a collision before the texts are compared',
    '    if (expected && session.attributes',
    `${TAKEN}    if (expected && session.attributes`,
    'rotation leaves no trace when it is refused',
  ),
  inMemory(
    'an id is taken before it is seen that the request is late',
    '    if (presentedIds.some(',
    "    if (this.#isTaken(id)) return { outcome: 'collision' };\n    if (presentedIds.some(",
    'creation refuses such a late request also under an id that is taken',
  ),
  inMemory(
    'a session changes its id in the step that ends it',
    '    if (session.deadline <= this.clock.now()) {\n',
    `    if (session.deadline <= this.clock.now()) {
      if (newId !== undefined) this.#changeId(session, newId);
`,
    'events record the end of a session under its stored id when the same step would rotate it',
  ),
  inMemory(
    'each change of id prolongs the marks of those before',
    '    const previousSessionId = session.id;\n',
    `    const previousSessionId = session.id;
    for (const [id, mark] of this.#forwarding) {
      if (mark.id === previousSessionId) this.#forwarding.set(id, { id: mark.id, until: this.clock.now() + FORWARDED_FOR });
    }
`,
    'rotation forwards for 60 s from each rotation',
  ),
  inMemory(
    'a late access prolongs the mark that it follows',
    "      case 'touch':\n",
    `      case 'touch':
        if (isForwarded) this.#forwarding.set(change.id, { id: session.id, until: this.clock.now() + FORWARDED_FOR });
`,
    'rotation forwards for 60 s, and no longer',
  ),
  inMemory(
    'a late save renews what is to be kept idle',
    'if (!keepsIdle) this.#renew(session);',
    'if (!keepsIdle || isForwarded) this.#renew(session);',
    'rotation renews the session for forwarded saves unless the request keeps it idle',
  ),
  inMemory(
    'a late save is answered as any other',
    '?? savedReply(change, session, isForwarded);',
    '?? savedReply(change, session, isForwarded && change.maxInactiveInterval === 0);',
    'rotation returns `forwarded` for a change that it has made under a later id',
  ),
  inMemory(
    'a late end leaves out what was set with it',
    'apply(change.attributes, session.attributes);',
    'if (!isForwarded || maxInactiveInterval === undefined) apply(change.attributes, session.attributes);',
    'events have the attributes that a request sets while it ends the session under its old id',
  ),
  inMemory(
    'a change of id that is sent twice is done, whatever has become of the session',
    FOUND,
    `    if (!session) {
      const wasDone = change.kind === 'update' && this.#forwarding.get(change.id)?.id === change.newId;
      return { outcome: wasDone && change.newId ? 'saved' : 'gone' };
    }
`,
    'rotation does not renew the session when it is sent again, and is gone when the session is',
  ),
  inMemory(
    'a change of id that is sent twice renews',
    'if (newId !== undefined && this.#forwarding.get(id)?.id === newId) return',
    'if (newId !== undefined && this.#forwarding.get(id)?.id === newId && (this.#renew(session), true)) return',
    'rotation does not renew the session when it is sent again, and is gone when the session is',
  ),
  inMemory(
    'a late request may give the session an interval, if only it ends',
    '(maxInactiveInterval ?? 0) !== 0',
    '(maxInactiveInterval ?? 0) < 0',
    'rotation refuses completely a forwarded save that sets a shorter interval',
  ),
  inMemory(
    'a late request may give the session an absolute end',
    'absoluteTimeout !== undefined || change',
    'absoluteTimeout === -1 || change',
    'rotation refuses completely a forwarded save that sets a later absolute end',
  ),
  inMemory(
    'a late update that expects nothing is told what there is by being done',
    '    if (expected && session.attributes',
    '    if (expected && !(isForwarded && expected.text === undefined) && session.attributes',
    'rotation returns to requests that loaded the old id nothing saved since',
  ),
  inMemory(
    'a change of id leaves large attributes behind',
    '    session.id = newId;\n',
    `    session.id = newId;
    for (const [name, text] of session.attributes) if (text.length > 65_536) session.attributes.delete(name);
`,
    'rotation keeps attributes of every name, large ones too',
  ),
  inScript(
    'delete-session',
    'a deletion by an old id forgets that it was one',
    "return { id == ARGV[2] and 'deleted' or 'forwarded' }",
    "redis.call('DEL', prefix .. 'sessions:forwarded:' .. ARGV[2])\nreturn { id == ARGV[2] and 'deleted' or 'forwarded' }",
    'creation refuses such a late request also after the session has ended, however it ended',
  ),
  inScript(
    'save-session',
    'a change of id leaves its mark before the texts are compared',
    "if condition ~= 'any' and not clears then",
    "if rotates then redis.call('SET', KEYS[5], new_id, 'PX', 60000) end\nif condition ~= 'any' and not clears then",
    'rotation leaves no trace when it is refused',
  ),
  inScript(
    'includes/keys',
    'a change of id that is sent twice is looked for before the session',
    "local bucket_prefix = prefix .. 'expirations:'",
    `local bucket_prefix = prefix .. 'expirations:'
if KEYS[8] and redis.call('GET', KEYS[5]) == ARGV[6] then return { 'saved' } end`,
    'rotation does not renew the session when it is sent again, and is gone when the session is',
  ),
];

const times = [
  inMemory(
    'the end counts from a last access that lies in the future',
    'Math.min(session.lastAccessedTime, this.clock.now())',
    'session.lastAccessedTime',
    'saving counts from now when the clock has stepped back behind the last access',
  ),
  inEndAfter(
    'milliseconds are counted in 32 bits',
    'since + seconds * 1000;',
    'since + ((seconds * 1000) | 0);',
    'idle timeout can be as long as 2147483647 seconds',
  ),
  inEndAfter(
    'intervals are counted in minutes',
    'since + seconds * 1000;',
    'since + Math.floor(seconds / 60) * 60_000;',
    'idle timeout can be longer or shorter for one session',
  ),
  inMemory(
    'an absolute end that is taken away takes the interval along',
    '    if (session.deadline <= this.clock.now()) {\n',
    `    if (absoluteTimeout === -1) session.deadline = Infinity;
    if (session.deadline <= this.clock.now()) {
`,
    'absolute timeout leaves the idle timeout in force when it is removed',
  ),
  inMemory(
    'sessions are created at a full second',
    'const creationTime = this.clock.now();',
    'const creationTime = Math.floor(this.clock.now() / 1000) * 1000;',
    'creation stamps the creation time by the clock of the store and returns it',
  ),
  inMemory(
    'a save of times records no access',
    'if (!keepsIdle) this.#renew(session);',
    'if (!keepsIdle && maxInactiveInterval === undefined) this.#renew(session);\n    else if (!keepsIdle) this.#setEnd(session);',
    'saving renews a session when only its timeouts change',
  ),
  inMemory(
    'a change of id gives a session without end the usual one',
    '    session.id = newId;\n',
    `    session.id = newId;
    if (session.deadline === Infinity) session.deadline = this.clock.now() + 1_800_000;
`,
    'idle timeout can be negative from the creation, and stays so through saves and rotations',
  ),
  inScript(
    'save-session',
    'a save that keeps the session idle and changes its times is an access',
    'if not keeps_idle and (not accessed',
    'if sets_end and (not accessed',
    'idle timeout counts from the last access when it is changed without one',
  ),
  inScript(
    'save-session',
    'the interval of a session that is kept idle is not recorded',
    'if new_interval then ARGV',
    'if new_interval and not keeps_idle then ARGV',
    'idle timeout counts from the last access when it is changed without one',
  ),
  inScript(
    'includes/set-end',
    'an end that is not to be moved forward is not moved',
    "redis.call('PEXPIREAT', shadow, ends_at)",
    `redis.call('PEXPIREAT', shadow, ends_at, 'NX')
  redis.call('PEXPIREAT', shadow, ends_at, 'GT')`,
    'idle timeout can be longer or shorter for one session',
  ),
];

const texts = [
  inMemory(
    'expected texts are compared by what fits into a column of 255 characters',
    MATCHES,
    'if (expected && session.attributes.get(expected.name)?.slice(0, 255) !== expected.text?.slice(0, 255)) {',
    'attribute update compares texts character by character',
  ),
  inMemory(
    'expected texts end at a NUL',
    MATCHES,
    "if (expected && session.attributes.get(expected.name)?.split('\\0')[0] !== expected.text?.split('\\0')[0]) {",
    'attribute update compares texts character by character',
  ),
  inMemory(
    'a removal compares nothing',
    'if (expected && session.attributes',
    'if (expected && change.attributes.get(expected.name) !== null && session.attributes',
    'attribute update writes nothing when the stored text is another one, and returns that text',
  ),
  inMemory(
    'the name of an expected attribute has no case',
    MATCHES,
    `const names = expected ? [expected.name, expected.name.toLowerCase()] : [];
    if (expected && !names.some((name) => session.attributes.get(name) === expected.text)) {`,
    'attribute update accepts every name, and compares that attribute alone',
  ),
  inMemory(
    'an update of an attribute writes nothing else',
    'apply(change.attributes, session.attributes);',
    `const named = ([name]: readonly [string, unknown]) => !expected || name === expected.name;
    apply(new Map([...change.attributes].filter(named)), session.attributes);`,
    'attribute update writes all changes of the step when the comparison succeeds',
  ),
  inScript(
    'save-session',
    'a removal leaves an empty text',
    "redis.call('HDEL', key, unpack(ARGV, i, math.min(i + 3999, last_removed)))",
    "redis.call('HSET', key, ARGV[i], '')",
    'attribute update writes when the stored text, or its absence, is as expected',
  ),
];

const AT_ONCE = 'bounds of a session hold for updates at once, of which as many are made as there is room for';
const LARGER = 'bounds of a session leave a session that exceeds them changeable, as long as it does not grow';

const bounds = [
  inMemory(
    'what others have stored meanwhile does not count',
    "    if (bound) return { outcome: 'full', bound };\n",
    '',
    AT_ONCE,
  ),
  inScript(
    'save-session',
    'what others have stored meanwhile does not count',
    'if largest then',
    'if false then',
    AT_ONCE,
  ),
  inScript('includes/fit', 'only bytes are counted', 'size % 1000000 <= most_attributes and ', '', AT_ONCE),
  inScript(
    'includes/fit',
    'only attributes are counted',
    ' and size < largest - most_attributes + 1000000',
    '',
    AT_ONCE,
  ),
  inScript(
    'includes/count',
    'what is replaced counts as well',
    'for i = first_attribute, last, 2 do bytes_of[ARGV[i]] = bytes_in(ARGV[i], ARGV[i + 1]) end',
    `for i = first_attribute, last, 2 do
      bytes_of[ARGV[i]] = (bytes_of[ARGV[i]] or 0) + (bytes_in(ARGV[i], ARGV[i + 1]) or 0)
    end`,
    'bounds of a session count what is there: neither what is replaced, nor what is removed',
  ),
  inScript(
    'includes/count',
    'a session that exceeds a bound can be changed no more',
    'if bytes > math.max(most_bytes, bytes_before) then',
    'if bytes > most_bytes then',
    LARGER,
  ),
  inScript(
    'includes/count',
    'the principal counts like any attribute',
    'own[field] or string.sub',
    'string.sub',
    "bounds of a session do not count the library's own attributes",
  ),
  inScript(
    'includes/count',
    'a full session cannot be signed in to',
    'if not signs_in then',
    'if true then',
    'bounds of a session neither keep anybody from signing in, nor a session from ending',
  ),
  inScript(
    'includes/count',
    'what a change clears counts',
    'for _, field in ipairs(stale or {}) do bytes_of[field] = nil end',
    '',
    'bounds of a session count only what a session keeps that is cleared',
  ),
];

const indexes = [
  inMemory(
    'an update of an attribute changes no index',
    WRITTEN,
    WRITTEN.replace('apply(change.indexes', 'if (!expected) apply(change.indexes'),
    'index follows a principal that an attribute update sets',
  ),
  inMemory(
    'a change of one index drops the others',
    WRITTEN,
    `    if (change.indexes.size > 0) session.indexes.clear();\n${WRITTEN}`,
    'index changes independently of the other indexes of a session',
  ),
  inMemory(
    'a principal that is removed with a change of id stays in the index',
    WRITTEN,
    `${WRITTEN}    for (const [name, value] of change.indexes) if (newId && value === null) session.indexes.set(name, 'bob');\n`,
    'index follows a session through a rotation',
  ),
  inMemory(
    'a principal takes all its sessions along to its new name',
    WRITTEN,
    `    for (const [name, value] of change.indexes) {
      const before = session.indexes.get(name);
      for (const each of this.#sessions.values()) {
        if (value !== null && before && each.indexes.get(name) === before) each.indexes.set(name, value);
      }
    }
${WRITTEN}`,
    'index keeps the other sessions of a principal',
  ),
  inMemory(
    'what is in no index is listed under an empty value',
    LISTED,
    "(indexes.get(indexName) ?? '') === value",
    'index lists sessions without a principal under no name',
  ),
  inMemory(
    'values of indexes are compared by what fits into a column of 255 characters',
    LISTED,
    'indexes.get(indexName)?.slice(0, 255) === value.slice(0, 255)',
    'indexed attributes keep different values apart, whatever characters they have and however long they are',
  ),
  inMemory(
    'values of indexes that are numbers are compared as such',
    LISTED,
    "[indexes.get(indexName), Number(indexes.get(indexName) || 'none')].includes(Number(value) || value)",
    'index accepts every name, and finds sessions by exactly that name',
  ),
  inMemory(
    'a look-up finds one page of sessions',
    'return this.#listed(indexName, value).map((session) =>',
    'return this.#listed(indexName, value).slice(0, 100).map((session) =>',
    'index finds all of many sessions',
  ),
  inMemory(
    'a look-up tells no time to live',
    'return this.#listed(indexName, value).map((session) => this.#recordOf(session));',
    'return this.#listed(indexName, value).map((session) => ({ ...this.#recordOf(session), timeToLive: undefined }));',
    'index finds sessions with the same content as a lookup by id',
  ),
  inMemory(
    'a session is ended whoever has it',
    "if (!isListed(session, change)) return { outcome: 'gone' };",
    '',
    'listing ends a session only for the principal that has it',
  ),
  inMemory(
    'a sign-in leaves the device of the creation',
    'session.device = change.device ?? session.device;',
    '',
    'listing shows the device of the last change that has one',
  ),
  inScript(
    'delete-session',
    'a session is ended whoever has it',
    "if KEYS[5] and not redis.call('ZSCORE', KEYS[5], id) then return { 'gone' } end",
    '',
    'listing ends a session only for the principal that has it',
  ),
  inScript(
    'delete-session',
    'an old id leads past the look at the index',
    "redis.call('ZSCORE', KEYS[5], id)",
    "(id ~= ARGV[2] or redis.call('ZSCORE', KEYS[5], id))",
    'listing ends a session only for the principal that has it',
  ),
  inScript(
    'save-session',
    'a rotation counts as a sign-in',
    "if not signs_in then score = kept_rule == '' and tonumber(fields[7]) or tonumber(fields[8]) or now end",
    '',
    'listing keeps the place of a session that is rotated',
  ),
  inScript(
    'save-session',
    'a session that signs in again keeps its place among those of its principal',
    'if not signs_in then score',
    'if true then score',
    'listing begins with the session that signed in last, which need not be the youngest',
  ),
  inScript(
    'list-sessions',
    'a page ends within the sessions of one moment, and a rotation moves one past the reading',
    "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], last, last, 'BYSCORE')) do table.insert(ids, id) end",
    '',
    'listing has all of many sessions once, the latest first',
  ),
  inScript(
    'list-sessions',
    'a listing has what is over',
    'if left ~= -2 and fields then',
    'if fields then',
    'listing has only live sessions, of which each counts',
  ),
  inScript(
    'end-sessions',
    'the session that stays is ended',
    'if not stays[id] then',
    'if true then',
    'listing ends the sessions of a principal but one, and no others',
  ),
  inScript(
    'end-sessions',
    'one batch ends',
    "#found == most and latest or ''",
    "''",
    'listing ends the sessions of a principal but one, and no others',
  ),
  inScript(
    'includes/end-session',
    'what has expired is ended again',
    'if text == false or not fields then return false end',
    '',
    'listing ends no session that has expired, nor one that has another principal by then',
  ),
  inScript(
    'save-session',
    'a session stays in the index that it leaves',
    "for _, entry in ipairs(leaving) do redis.call('ZREM', entry.set, id) end",
    '',
    'index follows the principal of a session, also back to an earlier one',
  ),
  inScript(
    'save-session',
    'a change of one index drops the others',
    'if not changed[entry.name] then',
    'if false then',
    'index changes independently of the other indexes of a session',
  ),
];

const events = [
  inMemory(
    'a deletion by an old id is told under that',
    '        this.#end(session, SessionDeletedEvent);\n',
    `        this.#sessions.delete(session.id);
        this.record(new SessionDeletedEvent({ ...this.#eventOf(session), sessionId: change.id }));
`,
    'events record a deletion by an old id under the current id',
  ),
  inMemory(
    'events have the time of the step for that of the last access',
    'new SessionSnapshot({ ...session,',
    'new SessionSnapshot({ ...session, lastAccessedTime: this.clock.now(),',
    'events have all attributes, large ones too, and the times of the session',
  ),
  inMemory(
    'events leave out large attributes',
    'new SessionSnapshot({ ...session,',
    `new SessionSnapshot({
      ...session, attributes: [...session.attributes].filter(([, text]) => text.length < 65_536),`,
    'events have all attributes, large ones too, and the times of the session',
  ),
  inMemory(
    'a change of id is told that was a collision',
    TAKEN,
    `    if (newId !== undefined && this.#isTaken(newId)) {
      this.record(new SessionIdChangedEvent({ ...this.#eventOf(session), previousSessionId: id }));
      return { outcome: 'collision' };
    }
`,
    'events record no change that was refused, and a change that was sent twice once',
  ),
  inMemory(
    'a save that comes too late is refused, and written into the data of the event',
    FOUND,
    `    if (!session) {
      const over = this.#sessions.get(change.id);
      if (over && change.kind === 'update') apply(change.attributes, over.attributes);
      return { outcome: 'gone' };
    }
`,
    'events have no value that was saved after the expiry',
  ),
  inMemory(
    'an interval of 0 of a session that is kept idle is left to the sweep',
    '    if (session.deadline <= this.clock.now()) {\n',
    '    if (session.deadline <= this.clock.now() && !keepsIdle) {\n',
    'events record a deletion by an interval of 0 without an access once, with the data of the session',
  ),
  inMemory(
    'a session without attributes is not found to be over',
    'session.deadline <= now);',
    'session.deadline <= now && session.attributes.size > 0);',
    'events record the expiry of a session without attributes',
  ),
  inMemory(
    'an expiry is told with the time when it was due',
    'at: this.clock.now(), session: this.#snapshot',
    'at: Math.min(this.clock.now(), session.deadline + 1), session: this.#snapshot',
    'events have the time at which the expiry was noticed',
  ),
  inScript(
    'create-session',
    'a creation is told before it is a collision',
    "if redis.call('EXISTS', key,",
    "redis.call('XADD', events, '*', 'type', 'created', 'session', id, 'at', 1)\nif redis.call('EXISTS', key,",
    'events record no change that was refused, and a change that was sent twice once',
  ),
];

export const contract = [...ids, ...changesOfId, ...times, ...texts, ...bounds, ...indexes, ...events];
