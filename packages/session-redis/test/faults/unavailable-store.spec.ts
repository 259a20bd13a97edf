import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
let proxy: TcpProxy;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  app = await App.start({
    redis: { url: proxy.url, notifications: 'off', commandTimeout: '500ms' },
    handlers: false,
  });
});
afterAll(async () => {
  await app.stop();
  await proxy.stop();
  await server.stop();
});

describe('a save fails with an error and no cookie', () => {
  const unavailable = {
    statusCode: 503,
    message: 'Session store unavailable',
    error: 'Service Unavailable',
    reason: 'store-unavailable',
  };

  it('when Redis does not reply in time', async () => {
    proxy.hold('request', (burst) => burst.includes('sessionAttr') || burst.includes(':sessions:'));
    const response = await app.agent().post('/set/a', { value: 1 });
    proxy.release('request');
    expect(response.status).toBe(503);
    expect(response.json()).toEqual(unavailable);
    expect(response.setCookies).toEqual([]);
  });

  it('when the connection is lost, and succeeds once it is back', async () => {
    proxy.refuse();
    proxy.cut();
    const response = await app.agent().post('/set/a', { value: 1 });
    expect(response.status).toBe(503);
    expect(response.json()).toEqual(unavailable);
    expect(response.setCookies).toEqual([]);
    const plain = await app.agent().get('/plain');
    expect(plain.status).toBe(200);
    await proxy.accept();
    const agent = app.agent();
    // Retries when the short command timeout has passed on a slow machine.
    await eventually(async () => expect((await agent.post('/set/a', { value: 1 })).status).toBe(201));
    await eventually(async () => expect((await agent.get('/read')).json()).toMatchObject({ attributes: { a: 1 } }));
  });
});
