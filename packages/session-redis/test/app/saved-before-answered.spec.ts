import { LeakGuard, RedisServer, TcpProxy } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
let proxy: TcpProxy;
let client: Redis;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  client = new Redis(server.url);
  app = await App.start({
    redis: { url: proxy.url, notifications: 'off', commandTimeout: '500ms' },
    handlers: false,
  });
});
afterAll(async () => {
  await app.stop();
  await proxy.stop();
  client.disconnect();
  await server.stop();
});

it('a redirect leaves after the save that it needs', async () => {
  const order: string[] = [];
  proxy.hold('reply', (burst) => burst.includes('created'));
  const response = app.agent().get('/redirect', { onHead: () => order.push('head') });
  await proxy.untilHeld('reply');
  // Redis has stored the session, the application does not know it yet: the client must have heard nothing.
  expect(await client.keys('nest:session:sessions:expires:*')).toHaveLength(1);
  order.push('saved');
  proxy.release('reply');
  expect((await response).status).toBe(302);
  expect((await response).setCookies).toHaveLength(1);
  expect(order).toEqual(['saved', 'head']);
});

describe('a save that fails is an error, without a cookie', () => {
  const unavailable = { statusCode: 503, message: 'Session store unavailable', error: 'Service Unavailable' };

  it('when Redis does not answer in time', async () => {
    proxy.hold('request', (burst) => burst.includes('sessionAttr') || burst.includes(':sessions:'));
    const response = await app.agent().post('/set/a', { value: 1 });
    proxy.release('request');
    expect(response.status).toBe(503);
    expect(response.json()).toEqual(unavailable);
    expect(response.setCookies).toEqual([]);
  });

  it('when the connection is lost, and works again when it is back', async () => {
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
    for (let status = 0; status !== 201;) status = (await agent.post('/set/a', { value: 1 })).status;
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { a: 1 } });
  });

  it('when Redis is out of memory, and nothing is half-written', async () => {
    const agent = app.agent();
    await agent.post('/set/a', { value: 1 });
    await client.config('SET', 'maxmemory', '1');
    try {
      const created = await app.agent().post('/set/a', { value: 1 });
      expect([created.status, created.setCookies]).toEqual([503, []]);
      const saved = await agent.post('/set/a', { value: 2 });
      expect(saved.status).toBe(503);
      expect((await agent.get('/read')).json()).toMatchObject({ attributes: { a: 1 } });
      expect((await agent.post('/logout')).status).toBe(201);
      expect((await agent.get('/read')).json()).toMatchObject({ isNew: true });
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
  });
});
