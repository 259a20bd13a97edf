import type { Server } from 'node:http';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { EndlessSources } from '../support/endless.sources.js';
import { VISIT_ATTRIBUTES, VisitModule } from '../support/visit.routes.js';
import { VisitedSessions } from '../support/visited-sessions.js';

LeakGuard.install();

const [SAVE] = VISIT_ATTRIBUTES;

let server: RedisServer;
let proxy: TcpProxy;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  client = new Redis(server.url);
});
afterAll(async () => {
  await proxy.stop();
  client.disconnect();
  await server.stop();
});

describe.each(['express', 'fastify'] as const)('the source of a response, on %s,', (adapter) => {
  let app: App;
  let sources: EndlessSources;
  let agent: HttpAgent;
  beforeAll(async () => {
    app = await App.start({
      adapter,
      imports: [VisitModule],
      redis: { url: proxy.url, namespace: adapter, notifications: 'off', commandTimeout: '1m' },
      handlers: false,
    });
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
