import { generateSessionKey } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';

LeakGuard.install();

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

const madeUp = (count: number) => Array.from({ length: count }, () => generateSessionKey().token.reveal());

describe.each([
  { adapter: 'express', partitions: 1 },
  { adapter: 'express', partitions: 4 },
  { adapter: 'fastify', partitions: 1 },
  { adapter: 'fastify', partitions: 4 },
] as const)('made-up cookies on $adapter, $partitions partition(s)', ({ adapter, partitions }) => {
  let app: App;
  beforeEach(async () => {
    await client.flushall();
    app = await App.start({
      adapter,
      redis: { url: redis.url, partitions, notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } },
      handlers: false,
    });
  });
  afterEach(() => app.stop());

  async function start(value: string): Promise<string> {
    const { setCookies } = await (await HttpAgent.for(app.nest)).post('/set/cart', { value });
    return /^SESSION=([\w-]{43});/.exec(setCookies[0]!)![1]!;
  }

  /** What a request with these tokens reads of its session, and the commands that it costs. */
  async function read(tokens: readonly string[]) {
    const agent = await HttpAgent.for(app.nest);
    await client.config('RESETSTAT');
    const cookie = tokens.map((token) => `SESSION=${token}`).join('; ');
    const response = await agent.get('/read', { headers: { cookie } });
    const stats = await commandStats(client);
    const calls = (name: string) => stats.get(name)?.calls ?? 0;
    return {
      attributes: response.json<{ attributes: object }>().attributes,
      loads: calls('hgetall'),
      // One in each partition that has some of them.
      asksOnce: calls('mget') >= 1 && calls('mget') <= partitions,
    };
  }

  it('cost one command, and only what counts is loaded', async () => {
    expect(await read(madeUp(64))).toEqual({ attributes: {}, loads: 0, asksOnce: true });
    const own = await start('apple');
    const attributes = { cart: 'apple' };
    expect(await read([...madeUp(63), own])).toEqual({ attributes, loads: 1, asksOnce: true });
    const other = await start('pear');
    // In their order, also from several partitions.
    expect(await read([...madeUp(20), own, ...madeUp(20), other])).toEqual({ attributes, loads: 1, asksOnce: true });
  });

  it('are asked about one by one while they are few', async () => {
    const own = await start('apple');
    const attributes = { cart: 'apple' };
    expect(await read([...madeUp(14), own])).toEqual({ attributes, loads: 1, asksOnce: false });
    expect(await read([...madeUp(4), own])).toEqual({ attributes, loads: 5, asksOnce: false });
  });
});
