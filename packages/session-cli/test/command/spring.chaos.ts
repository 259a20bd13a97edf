import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster, RedisServer } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { jsonOf, runCommand } from '../support/command.process.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';
import { documentedCommands, documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import {
  RECORDED_CONTEXTS,
  RECORDED_VALUES,
  type RecordedValue,
  stored,
} from '../../../session-spring/test/support/spring.records.js';
import { loadSpring, recordedIds, recordedKeys } from '../../../session-spring/test/support/spring.store.js';

LeakGuard.install();

interface Printed {
  readonly repository: string;
  readonly serializer?: string;
  readonly sessions: Record<string, number>;
  readonly clockAhead?: number;
  readonly problems: readonly string[];
}

const NAMESPACE = 'spring:session';
const INDEX = `${NAMESPACE}:index:org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME`;
const CART = RECORDED_VALUES.find(({ name }) => name === 'pojo')!;
const CONTEXT = RECORDED_CONTEXTS.find(({ name }) => name === 'userDetails')!;

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const spring = (options = '') => jsonOf<Printed>(`spring ${options}`.trim(), { REDIS_URL: server.url });

/** All keys with their ends. Redis reorders a hash or a set when it likes to. */
async function contents(): Promise<Record<string, string>> {
  const keys = (await client.keys('*')).sort();
  const all = keys.map(async (key) => [key, `${await client.pexpiretime(key)} ${await contentOf(key)}`]);
  return Object.fromEntries(await Promise.all(all)) as Record<string, string>;
}

async function contentOf(key: string): Promise<string> {
  const type = await client.type(key);
  if (type !== 'hash' && type !== 'set') return (await client.dumpBuffer(key))!.toString('hex');
  const items = (await client.callBuffer(type === 'hash' ? 'HGETALL' : 'SMEMBERS', key)) as Buffer[];
  const texts = items.map((item) => item.toString('hex'));
  const pairs = type === 'hash' ? texts.flatMap((text, i) => (i % 2 === 0 ? [`${text}=${texts[i + 1]}`] : [])) : texts;
  return pairs.sort().join();
}

/** Gives each session a cart, and somebody who is signed in. */
async function fillSessions(form: keyof Omit<RecordedValue, 'name'>): Promise<void> {
  for (const key of await client.keys(`${NAMESPACE}:sessions:????????-*`)) {
    await client.hset(key, 'sessionAttr:cart', stored(CART[form] ?? CART.typed!));
    await client.hset(key, 'sessionAttr:SPRING_SECURITY_CONTEXT', stored(CONTEXT[form]!));
  }
}

describe.each([
  ['one-jdk', 'jdk', 'java'],
  ['one-json-plain', 'plain', 'plain-json'],
  ['one-json-typed', 'typed', 'security-json'],
  ['interop-secmods', 'secmods', 'security-json'],
] as const)('of %s', (from, form, serializer) => {
  const snapshot =
    from === 'interop-secmods'
      ? recordedKeys(from, 'a1-node-written-session', 'set?')
      : recordedKeys(from, '16-principal-two-sessions');
  const count = recordedIds(snapshot).length;

  it('says what there is, finds nothing, and changes nothing', async () => {
    await loadSpring(client, snapshot);
    await fillSessions(form);
    const before = await contents();
    const { code, json } = await spring();
    // Without classes, nobody can say who is signed in.
    const isClassed = serializer !== 'plain-json';
    expect([code, json]).toEqual([
      0,
      {
        repository: 'indexed',
        expirations: 'buckets',
        serializer,
        hasUuids: true,
        principals: expect.any(Number),
        sessions: { found: count, sampled: count, alive: count, signedIn: isClassed ? count : 0 },
        hasSpringSecurity: true,
        clockAhead: expect.any(Number),
        unreadableAttributes: isClassed ? [] : ['SPRING_SECURITY_CONTEXT'],
        problems: [],
      },
    ]);
    expect(Math.abs(json.clockAhead!)).toBeLessThan(2000);
    expect(await contents()).toEqual(before);
  });

  it("knows the simple repository, which is Spring Boot's default", async () => {
    await loadSpring(client, snapshot);
    await fillSessions(form);
    const others = (await client.keys('*')).filter((key) => !/sessions:[^:]+$/.test(key));
    await client.del(...others);
    // It lets a session hash expire with the session.
    for (const key of await client.keys('*')) await client.pexpire(key, (await client.pttl(key)) - 300_000);
    const { code, json } = await spring();
    expect([code, json.repository, json.serializer, json.sessions['alive']]).toEqual([0, 'simple', serializer, count]);
  });
});

it('knows the sorted set of expirations', async () => {
  await loadSpring(client, recordedKeys('one-json-typed-sorted-set-store', '03-write-one'));
  const { code, json } = await spring();
  expect([code, json]).toMatchObject([0, { repository: 'indexed', expirations: 'sorted-set', serializer: 'json' }]);
});

it('shows no token, no value and no name of a user', async () => {
  const snapshot = recordedKeys('one-json-plain', '15-principal', 'set');
  await loadSpring(client, snapshot);
  await fillSessions('plain');
  const [id] = recordedIds(snapshot);
  await client.sadd(`${INDEX}:a secret name`, `"gone-${id}"`, '"short"', 'no json');
  for (const options of ['', '--json']) {
    const { stdout, stderr, code } = await runCommand(`spring ${options}`, { REDIS_URL: server.url });
    expect([options, code, stderr]).toEqual([options, 0, '']);
    for (const secret of [id!, 'short', 'a secret name', 'Ann', 'blue', '"ann"', 'ROLE_']) {
      expect([options, secret, stdout.includes(secret)]).toEqual([options, secret, false]);
    }
  }
});

it('says whether NestJS can share them', async () => {
  await loadSpring(client, recordedKeys('one-json-plain', '16-principal-two-sessions'));
  await fillSessions('plain');
  const { stdout } = await runCommand('spring', { REDIS_URL: server.url });
  expect(stdout).toMatch(/^nest-session +can read these sessions, and share them: mode: 'read', or 'shared'$/m);
});

it('says in words what there is, and what to do', async () => {
  await loadSpring(client, recordedKeys('one-jdk', '01-create-one-attribute'));
  const { code, stdout, stderr } = await runCommand('spring', { REDIS_URL: server.url });
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^repository +indexed: RedisIndexedSessionRepository, expirations in buckets$/m);
  expect(stdout).toMatch(/^serializer +JDK serialization, the default of Spring Session$/m);
  expect(stdout).toMatch(/^sessions +1 found, 1 read: 1 alive, 0 signed in by Spring Security$/m);
  expect(stdout).toMatch(/^nest-session +can read these sessions: mode: 'read'$/m);
  expect(stdout).toMatch(/^To share them, Spring needs the indexed repository and JSON: see the page/m);
});

it('finds that applications store in different ways', async () => {
  await loadSpring(client, recordedKeys('one-jdk', '01-create-one-attribute'));
  await loadSpring(client, recordedKeys('one-json-plain', '01-create-one-attribute'));
  const { code, json } = await spring();
  expect([code, json.serializer, json.problems]).toEqual([
    2,
    'mixed',
    [expect.stringMatching(/let all have the same serializer/)],
  ]);
});

it.each([
  ['ahead', 60_000],
  ['behind', -60_000],
])('finds that the clock of an application is %s', async (_, difference) => {
  for (let i = 0; i < 6; i++) {
    const fields = {
      creationTime: 1_795_206_008_503,
      lastAccessedTime: Date.now() + difference,
      maxInactiveInterval: 1800,
    };
    await client.hset(`${NAMESPACE}:sessions:${i}`, fields);
    await client.pexpire(`${NAMESPACE}:sessions:${i}`, 2_100_000);
    await client.set(`${NAMESPACE}:sessions:expires:${i}`, '');
  }
  const { code, json } = await spring();
  expect([code, json.problems]).toEqual([2, [expect.stringMatching(/^The clocks differ .* let NTP set both\.$/)]]);
  expect(Math.round(json.clockAhead! / 10_000)).toBe(difference / 10_000);
});

it('reads no more sessions than --sample says', async () => {
  for (let i = 0; i < 30; i++) {
    const fields = { creationTime: 1_795_206_008_503, lastAccessedTime: Date.now(), maxInactiveInterval: 1800 };
    await client.hset(`${NAMESPACE}:sessions:${i}`, fields);
  }
  const { json } = await spring('--sample 7');
  expect(json.sessions).toEqual({ found: 30, sampled: 7, alive: 7, signedIn: 0 });
});

it('refuses a namespace without sessions, one of nest-session, and a sample of nothing', async () => {
  const env = { REDIS_URL: server.url };
  expect(await runCommand('spring --namespace shop', env)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'There is no session of Spring in namespace "shop".\n',
  });
  await client.hset('shop:meta', 'holds', 'sessions');
  expect(await runCommand('spring --namespace shop', env)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Namespace "shop" is one of nest-session. Use verify and stats for it.\n',
  });
  expect((await runCommand('spring --sample 0', env)).code).toBe(1);
});

it('needs the documented rights, and no others', async () => {
  for (const line of documentedLines(['spring'])) await client.acl('SETUSER', 'spring', ...line);
  await loadSpring(client, recordedKeys('one-jdk', '24-slow-request-vs-vanished'));
  await client.acl('LOG', 'RESET');
  await client.config('RESETSTAT');
  const url = `redis://spring:another-secret@127.0.0.1:${server.port}`;
  expect((await runCommand('spring', { REDIS_URL: url })).code).toBe(0);
  const denied = (await client.acl('LOG')) as string[][];
  expect(denied.map((entry) => entry[entry.indexOf('object') + 1])).toEqual([]);
  const stats = await commandStats(client);
  const own = ['acl|log', 'config|resetstat', 'auth', 'client|setinfo', 'hello', 'quit'];
  const used = [...stats].filter(([name, { calls }]) => calls > 0 && !own.includes(name)).map(([name]) => name);
  expect(used.sort()).toEqual(documentedCommands(['spring']).sort());
});

it('looks at all nodes of a Cluster', async () => {
  const servers = await RedisCluster.start();
  const cluster = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
  try {
    for (let i = 0; i < 20; i++) {
      const fields = { creationTime: 1_795_206_008_503, lastAccessedTime: Date.now(), maxInactiveInterval: 1800 };
      await cluster.hset(`${NAMESPACE}:sessions:${i}`, fields);
    }
    await cluster.hset(`${NAMESPACE}:sessions:late`, 'lastAccessedTime', Date.now());
    const nodes = servers.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const { code, json } = await jsonOf<Printed>(`spring --cluster ${nodes}`);
    expect([code, json]).toMatchObject([0, { sessions: { found: 21, sampled: 20 }, problems: [] }]);
  } finally {
    cluster.disconnect();
    await servers.stop();
  }
});
