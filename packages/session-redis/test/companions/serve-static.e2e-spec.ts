import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { CompanionProcess } from '../support/companion.process.js';

LeakGuard.install();

let server: RedisServer;
let app: CompanionProcess;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});
afterEach(() => app.stop());

const ofSessions = (burst: Buffer) => burst.includes(':sessions:');

it.each(['express', 'fastify'] as const)(
  '@nestjs/serve-static serves files without a cookie, and without Redis where `exclude` names them, on %s',
  async (adapter) => {
    app = await CompanionProcess.start({ name: 'serve-static', adapter, redisUrl: proxy.url });
    const anybody = await app.agent().get('/assets/package.json');
    expect([anybody.status, anybody.setCookies]).toEqual([200, []]);

    const browser = app.agent();
    await browser.post('/visit');
    proxy.countFlights(ofSessions);
    expect((await browser.get('/excluded/package.json')).json()).toEqual({ type: 'module' });
    expect(proxy.flights).toBe(0);
    expect((await browser.get('/assets/package.json')).json()).toEqual({ type: 'module' });
    expect(proxy.flights).toBe(1);
    expect((await browser.get('/visit')).json()).toEqual({ visited: true });
  },
);
