import type { Server } from 'node:http';
import { LeakGuard, type TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import type { Redis } from 'ioredis';
import type { App } from '../support/app.fixture.js';
import { EndlessSources } from '../support/endless.sources.js';
import { VISIT_ATTRIBUTES } from '../support/visit.routes.js';
import { VisitedRedis } from '../support/visited.redis.js';
import { VisitedSessions } from '../support/visited-sessions.js';

LeakGuard.install();

const [SAVE] = VISIT_ATTRIBUTES;

let redis: VisitedRedis;
let proxy: TcpProxy;
let client: Redis;
beforeAll(async () => {
  redis = await VisitedRedis.start();
  ({ proxy, client } = redis);
});
afterAll(() => redis.stop());

describe.each(['express', 'fastify'] as const)('the source of a response, on %s,', (adapter) => {
  let app: App;
  let sources: EndlessSources;
  let agent: HttpAgent;
  beforeAll(async () => {
    app = await redis.startApp(adapter);
    // So that the server closes no idle connection either.
    (app.nest.getHttpServer() as Server).keepAliveTimeout = 0;
    sources = app.nest.get(EndlessSources, { strict: false });
  });
  afterAll(() => app.stop());

  beforeEach(() => {
    agent = new HttpAgent(app.url, { keepAlive: true });
  });
  afterEach(() => agent.close());

  it.each(['file', 'generator', 'sse', 'pipeline', 'pipe', 'writes'])(
    'stops when the save has failed, although its client stays connected: %s',
    async (kind) => {
      proxy.hold('request', SAVE);
      const response = agent.get(`/${kind}/refused`);
      await proxy.untilHeld('request');
      await client.config('SET', 'maxmemory', '1');
      proxy.release();
      const { status, setCookies } = await response;
      await client.config('SET', 'maxmemory', '0');
      expect([status, setCookies]).toEqual([503, []]);
      await eventually(() => expect([...sources.running]).toEqual([]));
      expect((await agent.get('/returned/afterwards')).status).toBe(200);
    },
  );

  it('is aborted when it floods the queue during the save, and the save completes', async () => {
    proxy.hold('request', SAVE);
    const response = agent.get('/flood/flooded').catch((error: Error) => error.message);
    expect(await response).toBe('socket hang up');
    expect(sources.flooded).toBe(17);
    proxy.release();
    const sessions = new VisitedSessions(client, adapter);
    await eventually(async () => expect(await sessions.missing(['flooded'])).toEqual([]));
    expect((await agent.get('/returned/afterwards')).status).toBe(200);
  });

  it('is garbage-collected afterwards, with its response', async () => {
    await eventually(async () => expect(await sources.garbage.left()).toEqual({}));
  });
});
