import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer, sessionOf } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';

LeakGuard.install();

const TOO_FEW = {
  statusCode: 503,
  message: 'Session store unavailable',
  error: 'Service Unavailable',
  reason: 'store-unavailable',
};

let primary: RedisServer;
let replica: RedisServer;
let direct: Redis;
let app: App;
beforeAll(async () => {
  primary = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
  replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${primary.port}`] });
  direct = new Redis(primary.url);
});
beforeEach(async () => {
  await eventually(async () => expect(await direct.info('replication')).toContain('state=online'));
  await direct.flushall();
  app = await App.start({
    session: { touchInterval: 0 },
    redis: { url: primary.url, replicas: 1, commandTimeout: '1s' },
  });
});
afterEach(async () => {
  replica.thaw();
  await app.stop();
});
afterAll(async () => {
  direct.disconnect();
  await Promise.all([replica.stop(), primary.stop()]);
});

// Not a canary, which has a word before its id.
const SHADOW = /^nest:session:sessions:expires:([\w-]+)$/;
const sessions = async () =>
  (await direct.keys('nest:session:sessions:expires:*')).flatMap((key) => SHADOW.exec(key)?.[1] ?? []);
const attributesSeenBy = async (agent: HttpAgent) =>
  ((await agent.get('/read')).json() as { attributes: Record<string, unknown> }).attributes;

/** A client with a session, which the replica has. */
async function visitor(): Promise<HttpAgent> {
  const agent = app.agent();
  await eventually(async () => expect((await agent.post('/set/cart', { value: 'full' })).status).toBe(201));
  return agent;
}

it('a session that no replica has is a 503 without a cookie, and lives on the primary until it expires', async () => {
  replica.freeze();
  const agent = app.agent();
  const response = await agent.post('/set/cart', { value: 'full' });
  expect([response.status, response.json()]).toEqual([503, TOO_FEW]);
  expect(agent.cookies).toEqual({});
  expect(await sessions()).toHaveLength(1);
});

it('a change that no replica has is a 503, and the next request finds it made', async () => {
  const agent = await visitor();
  replica.freeze();
  expect((await agent.post('/set/cart', { value: 'empty' })).status).toBe(503);
  expect(await attributesSeenBy(agent)).toEqual({ cart: 'empty' });
});

it('an update that no replica has is a 503, and is not repeated', async () => {
  const agent = await visitor();
  replica.freeze();
  expect((await agent.post('/count')).status).toBe(503);
  expect(await attributesSeenBy(agent)).toEqual({ cart: 'full', count: 1 });
});

it('a sign-in that no replica has is a 503 without a new cookie, and neither token is left for the client', async () => {
  const agent = await visitor();
  const { id: before } = (await sessionOf(app.nest, agent))!;
  const token = agent.cookie('SESSION');
  replica.freeze();
  expect((await agent.post('/login/ann')).status).toBe(503);
  expect(agent.cookie('SESSION')).toBe(token);
  expect(await sessions()).not.toContain(before);
  expect(await attributesSeenBy(agent)).toEqual({});
});

it('a logout that no replica has is a 503, and the session has ended on the primary', async () => {
  const agent = await visitor();
  replica.freeze();
  expect((await agent.post('/logout')).status).toBe(503);
  expect(await sessions()).toEqual([]);
  expect(await attributesSeenBy(agent)).toEqual({});
});

it('a request that only reads renews its session, and does not wait for replicas to know that', async () => {
  const agent = await visitor();
  const { id } = (await sessionOf(app.nest, agent))!;
  const accessed = () => direct.hget(`nest:session:sessions:${id}`, 'lastAccessedTime');
  const before = Number(await accessed());
  await direct.config('RESETSTAT');
  expect(await attributesSeenBy(agent)).toEqual({ cart: 'full' });
  await eventually(async () => expect(Number(await accessed())).toBeGreaterThan(before));
  expect((await agent.post('/set/cart', { value: 'empty' })).status).toBe(201);
  expect((await commandStats(direct)).get('wait')?.calls).toBe(1);
});

it('changes are refused, and not made, where Redis itself asks for a replica', async () => {
  const agent = await visitor();
  await direct.config('SET', 'min-replicas-to-write', 1);
  try {
    await replica.kill();
    await eventually(async () => expect(await direct.info('replication')).toContain('connected_slaves:0'));
    expect((await agent.post('/set/cart', { value: 'refused' })).status).toBe(503);
    expect(await attributesSeenBy(agent)).toEqual({ cart: 'full' });
  } finally {
    await direct.config('SET', 'min-replicas-to-write', 0);
    await replica.restart();
  }
});

it('changes succeed again when a replica has caught up', async () => {
  const agent = await visitor();
  await replica.kill();
  expect((await agent.post('/set/cart', { value: 'lost' })).status).toBe(503);
  await replica.restart();
  await eventually(async () => expect((await agent.post('/set/cart', { value: 'kept' })).status).toBe(201));
  const [id] = await sessions();
  const copy = new Redis(replica.url);
  expect(await copy.hget(`nest:session:sessions:${id}`, 'sessionAttr:cart')).toBe('"kept"');
  copy.disconnect();
});
