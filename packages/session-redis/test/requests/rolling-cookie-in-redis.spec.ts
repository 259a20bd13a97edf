import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  proxy.countFlights((burst) => burst.includes(':sessions:'));
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});

describe.each(['express', 'fastify'] as const)('a cookie with Max-Age, on %s,', (adapter) => {
  let app: App;
  beforeAll(async () => {
    app = await App.start({
      adapter,
      // Every request renews the session.
      session: { touchInterval: 0, cookie: { maxAge: '1h' } },
      redis: { url: proxy.url, namespace: adapter, notifications: 'off', commandTimeout: '1m' },
      handlers: false,
    });
  });
  afterAll(() => app.stop());

  it('is sent again when the session is renewed, in one more round trip', async () => {
    const agent = app.agent();
    expect(await proxy.flightsDuring(() => agent.post('/set/a', { value: 1 }))).toBe(1);
    const token = agent.cookie('SESSION');
    const flights = await proxy.flightsDuring(async () => {
      const { setCookies } = await agent.get('/plain');
      expect(setCookies).toEqual([`SESSION=${token}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`]);
    });
    expect(flights).toBe(2);
  });

  it('is not sent again by a request that was held open across a second login, though its save is forwarded', async () => {
    const agent = app.agent();
    await agent.post('/login/ann');
    const { gate, response } = app.slow(agent.fork(), `across-login-${adapter}`);
    await gate.reached();
    const login = await agent.post('/login/ann');
    gate.open();
    expect([(await response).status, (await response).setCookies]).toEqual([201, []]);
    expect(login.setCookies).toHaveLength(1);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { [`across-login-${adapter}`]: 'late' } });
  });

  it('is not sent again by a request that was held open across a logout', async () => {
    const agent = app.agent();
    await agent.post('/set/a', { value: 1 });
    const { gate, response } = app.slow(agent.fork(), `across-logout-${adapter}`);
    await gate.reached();
    await agent.post('/logout');
    gate.open();
    expect([(await response).status, (await response).setCookies]).toEqual([201, []]);
  });

  it('is sent after Redis has replied, not before', async () => {
    const agent = app.agent();
    await agent.post('/set/a', { value: 1 });
    let hasResponded = false;
    proxy.hold('reply', (burst) => burst.includes('eval'));
    const response = agent.get('/plain').finally(() => (hasResponded = true));
    await proxy.untilHeld('reply');
    expect(hasResponded).toBe(false);
    proxy.release('reply');
    expect((await response).setCookies).toHaveLength(1);
  });
});
