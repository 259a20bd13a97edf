import { SessionRepository, SessionStoreError } from '@nest-session/core';
import { storePrimitivesOf } from '@nest-session/core/internal';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { Redis } from 'ioredis';
import { readStoredValue } from '../../src/values/stored-value.js';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../support/spring.app.js';
import { keptIn, NAMESPACE, restoreRecorded } from '../support/recorded-spring.js';
import {
  RECORDED_KEYS,
  RECORDED_SIMPLE,
  RECORDED_VALUES,
  type RecordedKey,
  type RecordedKeys,
  stored,
} from '../support/spring.records.js';

LeakGuard.install();

const MINUTE = 60_000;
const GRACE = 300_000;
const [JAVA_INTEGER, JAVA_LONG] = ['int', 'longLarge'].map((name) =>
  stored(RECORDED_VALUES.find((each) => each.name === name)!.jdk),
) as [Buffer, Buffer];

let server: SteppableRedisServer;
let client: Redis;
let app: App;
let sessions: SessionRepository;
beforeAll(async () => {
  server = await SteppableRedisServer.start();
  client = new Redis(server.url);
  app = await startWithSpring({ url: server.url, mode: 'read' });
  sessions = app.nest.get(SessionRepository, { strict: false });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

type Told = RecordedKeys & Required<Pick<RecordedKeys, 'says'>>;

/** Where Java had read a session that is in Redis, and that ends one day. */
const READ_BY_JAVA = [...RECORDED_KEYS, ...RECORDED_SIMPLE].filter(
  (each): each is Told => !!each.says && `sessions:${each.says.id}` in each.keys && each.says.maxInactiveInterval > 0,
);
const FORMS = [...new Set(READ_BY_JAVA.map(({ from }) => from))];

const recorded = (from: string, scenario: string) =>
  READ_BY_JAVA.find((each) => each.from === from && each.scenario === scenario)!;
const keyOf = ({ says }: Told) => `${NAMESPACE}:sessions:${says.id}`;
const shadowOf = ({ says }: Told) => `${NAMESPACE}:sessions:expires:${says.id}`;
const endOf = ({ says }: Told) => says.lastAccessedTime + says.maxInactiveInterval * 1000;
const bucketAt = (time: number) => `${NAMESPACE}:expirations:${Math.floor(time / MINUTE + 1) * MINUTE}`;
const kept = () => keptIn(client);
const touch = (id: string) => storePrimitivesOf(sessions).write({ kind: 'touch', id });

async function loaded({ says }: Told) {
  return (await sessions.findById(says.id))!;
}

/** The steps of the records in which a request of Spring changed nothing, behind what was there before it. */
const REQUESTS_OF_SPRING = RECORDED_KEYS.flatMap((each, i) => {
  const before = RECORDED_KEYS[i - 1];
  const isNext = before?.scenario === each.scenario && before.from === each.from;
  const read = READ_BY_JAVA.find((told) => told === each);
  return isNext && read && each.step === 'GET /read' && keyOf(read).slice(NAMESPACE.length + 1) in before.keys
    ? [[before, read] as const]
    : [];
});

it('the records have requests of Spring that change nothing, with each serializer and place of ends', () => {
  const from = REQUESTS_OF_SPRING.map(([, each]) => each.from);
  expect(from).toEqual(expect.arrayContaining(['one-jdk', 'one-json-plain', 'one-json-typed']));
  expect(from).toContain('one-json-typed-sorted-set-store');
  expect(from.length).toBeGreaterThan(10);
});

it.each(
  REQUESTS_OF_SPRING.map(([before, after], i) => [`${after.from} ${after.scenario} ${i}`, before, after] as const),
)('does what a request of Spring did: %s', async (_name, before, after) => {
  await restoreRecorded(server, client, after);
  const bySpring = await kept();
  await restoreRecorded(server, client, before);
  const session = await loaded(after);
  await server.stopClock(after.says.lastAccessedTime);
  expect(await sessions.touch(session)).toBe('touched');
  const byUs = await kept();
  const bucketEnd = endOf(after) + GRACE;
  expect(Object.keys(byUs)).toEqual(Object.keys(bySpring));
  for (const [key, { content, end }] of Object.entries(byUs)) {
    expect([key, content]).toEqual([key, bySpring[key]!.content]);
    // Spring gives a bucket its time to live before its first member, so that it has none.
    const expected = bySpring[key]!.end === -1 && /:expirations:\d+$/.test(key) ? bucketEnd : bySpring[key]!.end;
    // It takes several round trips, and the records were made after them.
    expect([key, Math.abs(end - expected) < 500]).toEqual([key, true]);
  }
});

describe.each(FORMS)('a session of %s', (from) => {
  const all = READ_BY_JAVA.filter((each) => each.from === from);

  it('is renewed by the clock of Redis, and nothing else is changed', async () => {
    for (const snapshot of all) {
      await restoreRecorded(server, client, snapshot);
      const [session, before] = [await loaded(snapshot), await kept()];
      const now = endOf(snapshot) - 1000;
      await server.stopClock(now);
      const left = Object.keys(await kept());
      expect(await sessions.touch(session)).toBe('touched');
      const expected = Object.fromEntries(left.map((key) => [key, before[key]!]));
      expectRenewal(snapshot, expected, now);
      expect([snapshot.scenario, await kept()]).toEqual([snapshot.scenario, expected]);
      expect((await loaded(snapshot)).lastAccessedTime).toBe(now);
    }
  });

  it('has a time in the form that it had', async () => {
    for (const snapshot of all) {
      await restoreRecorded(server, client, snapshot);
      const before = (await client.hgetBuffer(keyOf(snapshot), 'lastAccessedTime'))!;
      const now = endOf(snapshot) - 500;
      await server.stopClock(now);
      await sessions.touch(await loaded(snapshot));
      const after = (await client.hgetBuffer(keyOf(snapshot), 'lastAccessedTime'))!;
      expect(readStoredValue(after)).toBe(now);
      const isJava = before[0] === 0xac;
      if (isJava) expect(after.subarray(0, -8)).toEqual(before.subarray(0, -8));
      else expect(after.toString()).toBe(before.toString().replace(/\d{13}/, `${now}`));
    }
  });

  it('is not renewed from its end on', async () => {
    for (const snapshot of all) {
      await restoreRecorded(server, client, snapshot);
      const session = await loaded(snapshot);
      // A Redis whose clock is behind has not removed it.
      for (const key of await client.keys('*')) await client.persist(key);
      await server.stopClock(endOf(snapshot));
      const before = await kept();
      expect(await sessions.touch(session)).toBe('gone');
      expect(await kept()).toEqual(before);
    }
  });

  it('is not made again when it has gone since it was loaded', async () => {
    for (const snapshot of all) {
      await restoreRecorded(server, client, snapshot);
      const session = await loaded(snapshot);
      await client.del(keyOf(snapshot));
      const before = await kept();
      expect(await sessions.touch(session)).toBe('gone');
      await client.flushall();
      expect(await sessions.touch(session)).toBe('gone');
      expect(await client.dbsize()).toBe(0);
      expect(before).not.toHaveProperty([keyOf(snapshot)]);
    }
  });
});

/** What a renewal changes in these keys. */
function expectRenewal(snapshot: Told, all: Awaited<ReturnType<typeof kept>>, now: number): void {
  const { id, maxInactiveInterval } = snapshot.says;
  const interval = maxInactiveInterval * 1000;
  const session = all[keyOf(snapshot)]!;
  const isIndexed = !snapshot.from.startsWith('simple-');
  const content = session.content.map((each) =>
    each.replace(/^(lastAccessedTime=.*?)[0-9a-f]+$/, (field) => withTime(field, now)),
  );
  all[keyOf(snapshot)] = { content, end: now + interval + (isIndexed ? GRACE : 0) };
  if (!isIndexed) return;
  all[shadowOf(snapshot)] = { content: [''], end: now + interval };
  const set = all[`${NAMESPACE}:sessions:expirations`];
  if (set) {
    const listed = Buffer.from(`"${id}"`).toString('hex');
    set.content = set.content.map((each) => (each.startsWith(listed) ? `${listed}=${now + interval}` : each)).sort();
    return;
  }
  const isJava = snapshot.from === 'one-jdk';
  const text = Buffer.from(isJava ? `expires:${id}` : `"expires:${id}"`);
  const member = (isJava ? Buffer.concat([Buffer.from('aced000574002c', 'hex'), text]) : text).toString('hex');
  const [from, to] = [bucketAt(endOf(snapshot)), bucketAt(now + interval)];
  const others = all[from]?.content.filter((each) => each !== member) ?? [];
  if (others.length > 0) all[from] = { ...all[from]!, content: others };
  else delete all[from];
  const there = (all[to]?.content ?? []).filter((each) => each !== member);
  all[to] = { content: [...there, member].sort(), end: now + interval + GRACE };
}

/** A field, in hexadecimal digits, with another time. */
function withTime(field: string, time: number): string {
  const [name, hex] = field.split('=') as [string, string];
  const value = Buffer.from(hex, 'hex');
  if (value[0] === 0xac) value.writeBigInt64BE(BigInt(time), value.length - 8);
  const changed = value[0] === 0xac ? value : Buffer.from(value.toString().replace(/\d{13}/, `${time}`));
  return `${name}=${changed.toString('hex')}`;
}

/** The ids of session hashes of which Java has no session. */
const lostIn = ({ keys }: RecordedKeys) =>
  Object.keys(keys).flatMap((name) => (isLost(keys[name]!) ? (/^sessions:([^:]+)$/.exec(name)?.[1] ?? []) : []));
const isLost = ([type, , fields]: RecordedKey) =>
  type === 'hash' &&
  (!('creationTime' in fields) || readStoredValue(stored(fields['maxInactiveInterval'] ?? '')) === 0);

it.each(['one-jdk', 'one-json-plain', 'one-json-typed'])(
  'a session that has ended, or is incomplete, stays so: %s',
  async (from) => {
    const scenarios = new Set<string>();
    for (const snapshot of RECORDED_KEYS.filter((each) => each.from === from)) {
      for (const id of lostIn(snapshot)) {
        await restoreRecorded(server, client, snapshot);
        const before = await kept();
        expect(await touch(id)).toEqual({ outcome: 'gone' });
        expect(await kept()).toEqual(before);
        scenarios.add(snapshot.scenario);
      }
    }
    expect([...scenarios]).toEqual(
      expect.arrayContaining(['07-invalidate', '11-interval-zero', '24-slow-request-vs-vanished']),
    );
  },
);

it.each(['one-jdk', 'one-json-plain', 'one-json-typed'])(
  'a session that never ends gets the time, and keeps its times to live: %s',
  async (from) => {
    const snapshot = RECORDED_KEYS.find(
      (each) => each.from === from && each.scenario === '12-interval-negative' && each.step === 'GET /read',
    )!;
    await restoreRecorded(server, client, snapshot);
    const { id, lastAccessedTime } = snapshot.says!;
    const key = `${NAMESPACE}:sessions:${id}`;
    const before = await kept();
    await server.stopClock(lastAccessedTime + 1000);
    expect(await touch(id)).toEqual({ outcome: 'touched' });
    expect((await sessions.findById(id))!.lastAccessedTime).toBe(lastAccessedTime + 1000);
    const { [key]: session, ...others } = await kept();
    const { [key]: was, ...others_before } = before;
    expect([others, session!.end]).toEqual([others_before, was!.end]);
  },
);

describe('the last access', () => {
  it.each(FORMS)('never goes back: %s', async (from) => {
    const snapshot = READ_BY_JAVA.find((each) => each.from === from)!;
    await restoreRecorded(server, client, snapshot);
    const before = await kept();
    // The application of Spring was ahead.
    const now = snapshot.says.lastAccessedTime - 10_000;
    await server.stopClock(now);
    expect(await sessions.touch(await loaded(snapshot))).toBe('touched');
    const after = await kept();
    expect(after[keyOf(snapshot)]!.content).toEqual(before[keyOf(snapshot)]!.content);
    const isIndexed = shadowOf(snapshot) in before;
    expect(after[keyOf(snapshot)]!.end).toBe(isIndexed ? now + 1_800_000 + GRACE : endOf(snapshot));
  });

  it.each([
    ['plain JSON', '1795710970897.0'],
    ['another class', '["java.util.concurrent.atomic.AtomicLong",1795710970897]'],
    ['more digits than a long', '17957109708970000000'],
    ['an Integer of Java', JAVA_INTEGER],
    ['a Long of Java that ends too early', JAVA_LONG.subarray(0, -1)],
  ])('in a form that Spring does not write is an error that says so: %s', async (_form, value) => {
    const snapshot = RECORDED_SIMPLE.find(({ from }) => from === 'simple-jdk') as Told;
    await restoreRecorded(server, client, snapshot);
    const session = await loaded(snapshot);
    await client.hset(keyOf(snapshot), 'lastAccessedTime', value);
    const before = await kept();
    const error: unknown = await sessions.touch(session).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SessionStoreError);
    expect((error as SessionStoreError).reason).toMatch(/lastAccessedTime in Redis .* Spring Session does not write/);
    expect(await kept()).toEqual(before);
  });
});

it('an interval that is no int of Java is an error, too', async () => {
  const snapshot = RECORDED_SIMPLE.find(({ from }) => from === 'simple-plain') as Told;
  await restoreRecorded(server, client, snapshot);
  for (const interval of ['2147483648', '["java.lang.Long",1800]', '1e3', '1800.0']) {
    await client.hset(keyOf(snapshot), 'maxInactiveInterval', interval);
    const before = await kept();
    await expect(touch(snapshot.says.id)).rejects.toThrow(/maxInactiveInterval/);
    expect([interval, await kept()]).toEqual([interval, before]);
  }
});

describe('a session of the indexed repository', () => {
  it.each(['one-jdk', 'one-json-plain'])('whose shadow key is gone gets it again: %s', async (from) => {
    const snapshot = recorded(from, '01-create-one-attribute');
    await restoreRecorded(server, client, snapshot);
    await client.del(shadowOf(snapshot));
    expect(await sessions.touch(await loaded(snapshot))).toBe('touched');
    expect([await client.strlen(shadowOf(snapshot)), await client.pttl(shadowOf(snapshot))]).toEqual([0, 1_800_000]);
    expect(await client.pttl(keyOf(snapshot))).toBe(1_800_000 + GRACE);
  });

  it('gets it again where a sorted set tells when sessions end', async () => {
    const snapshot = recorded('one-json-typed-sorted-set-store', '01-create-one-attribute');
    await restoreRecorded(server, client, snapshot);
    await client.del(shadowOf(snapshot));
    expect(await sessions.touch(await loaded(snapshot))).toBe('touched');
    expect(await client.pttl(shadowOf(snapshot))).toBe(1_800_000);
    expect(await client.keys(`${NAMESPACE}:expirations:*`)).toEqual([]);
  });

  it.each(['one-jdk', 'one-json-plain'])('that is in no bucket is in the right one then: %s', async (from) => {
    const snapshot = recorded(from, '01-create-one-attribute');
    await restoreRecorded(server, client, snapshot);
    const [bucket] = await client.keys(`${NAMESPACE}:expirations:*`);
    const members = await client.smembersBuffer(bucket!);
    await client.del(bucket!);
    await server.stopClock(snapshot.at + MINUTE);
    await sessions.touch(await loaded(snapshot));
    const right = bucketAt(snapshot.at + MINUTE + 1_800_000);
    expect(await client.keys(`${NAMESPACE}:expirations:*`)).toEqual([right]);
    expect([await client.smembersBuffer(right), await client.pttl(right)]).toEqual([members, 1_800_000 + GRACE]);
  });

  it('that is in no sorted set although others are is there then', async () => {
    const snapshot = recorded('one-json-typed-sorted-set-store', '01-create-one-attribute');
    await restoreRecorded(server, client, snapshot);
    const set = `${NAMESPACE}:sessions:expirations`;
    await client.del(set);
    await client.zadd(set, 1, '"other"');
    await sessions.touch(await loaded(snapshot));
    const score = `${snapshot.at + 1_800_000}`;
    expect(await client.zrange(set, '0', '-1', 'WITHSCORES')).toEqual(['"other"', '1', `"${snapshot.says.id}"`, score]);
    expect(await client.keys(`${NAMESPACE}:expirations:*`)).toEqual([]);
  });

  it('that is in a bucket stays in buckets, whatever a sorted set from earlier still has', async () => {
    const snapshot = recorded('one-json-plain', '01-create-one-attribute');
    await restoreRecorded(server, client, snapshot);
    await client.zadd(`${NAMESPACE}:sessions:expirations`, 1, `"${snapshot.says.id}"`);
    await server.stopClock(snapshot.at + MINUTE);
    await sessions.touch(await loaded(snapshot));
    const right = bucketAt(snapshot.at + MINUTE + 1_800_000);
    expect(await client.keys(`${NAMESPACE}:expirations:*`)).toEqual([right]);
  });
});

describe('a key of another type', () => {
  const snapshot = recorded('one-json-plain', '01-create-one-attribute');
  const renew = async () => sessions.touch(await loaded(snapshot));
  beforeEach(() => restoreRecorded(server, client, snapshot));

  it('in the place of the session is no session', async () => {
    const session = await loaded(snapshot);
    await client.set(keyOf(snapshot), 'x');
    const before = await kept();
    expect(await sessions.touch(session)).toBe('gone');
    expect(await kept()).toEqual(before);
  });

  it('in the place of the shadow key is an error without the id, before anything is written', async () => {
    await client.del(shadowOf(snapshot));
    await client.rpush(shadowOf(snapshot), 'x');
    const before = await kept();
    const error = (await renew().catch((reason: unknown) => reason)) as SessionStoreError;
    expect(error.reason).toContain('sessions:expires:... is a list, not a string');
    expect(error.reason).not.toContain(snapshot.says.id);
    expect(await kept()).toEqual(before);
  });

  it('in the place of the new bucket is an error, before anything is written', async () => {
    await server.stopClock(snapshot.at + MINUTE);
    await client.set(bucketAt(snapshot.at + MINUTE + 1_800_000), 'x');
    const before = await kept();
    await expect(renew()).rejects.toThrow(SessionStoreError);
    expect(await kept()).toEqual(before);
  });

  it.each([
    ['the former bucket', bucketAt(snapshot.says.lastAccessedTime + 1_800_000)],
    ['the sorted set', `${NAMESPACE}:sessions:expirations`],
  ])('in the place of %s stops no renewal', async (_what, key) => {
    await client.del(key);
    await client.set(key, 'x');
    await server.stopClock(snapshot.at + MINUTE);
    expect(await renew()).toBe('touched');
    expect([await client.get(key), await client.pttl(shadowOf(snapshot))]).toEqual(['x', 1_800_000]);
  });
});

describe.each(['jdk', 'typed', 'plain'] as const)(
  'a session that Spring Security has expired, in the form %s',
  (form) => {
    const told = recorded(form === 'jdk' ? 'one-jdk' : `one-json-${form}`, '01-create-one-attribute');
    const value = (name: string) => stored(RECORDED_VALUES.find((each) => each.name === name)![form]!);
    const mark = (name: string) =>
      client.hset(
        keyOf(told),
        'sessionAttr:org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED',
        value(name),
      );

    it('is found no more, and not renewed', async () => {
      await restoreRecorded(server, client, told);
      await mark('boolFalse');
      expect(await sessions.touch(await loaded(told))).toBe('touched');
      const session = await loaded(told);
      await mark('boolTrue');
      const before = await kept();
      expect(await sessions.findById(told.says.id)).toBeNull();
      expect(await sessions.touch(session)).toBe('gone');
      expect(await kept()).toEqual(before);
    });
  },
);
