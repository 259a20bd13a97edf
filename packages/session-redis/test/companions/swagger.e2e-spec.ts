import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { CompanionProcess } from '../support/companion.process.js';

LeakGuard.install();

let server: RedisServer;
let app: CompanionProcess;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
afterEach(() => app.stop());

it.each(['express', 'fastify'] as const)(
  '@nestjs/swagger documents the cookie and no parameter for the session, on %s',
  async (adapter) => {
    app = await CompanionProcess.start({ name: 'swagger', adapter, redisUrl: server.url });
    const document = (await app.agent().get('/docs-json')).json<any>();
    expect(document.components.securitySchemes).toEqual({ session: { type: 'apiKey', in: 'cookie', name: 'SESSION' } });
    expect(document.paths['/cart'].post).toMatchObject({ parameters: [], responses: { 503: {} } });

    const browser = app.agent();
    const page = await browser.get('/docs');
    expect([page.status, page.setCookies, page.headers.vary]).toEqual([200, [], undefined]);
    expect(page.text).toContain('swagger-ui');
    expect((await browser.post('/cart', { item: 'apple' })).json()).toEqual(['apple']);
    expect((await browser.post('/cart', { item: 'pear' })).json()).toEqual(['apple', 'pear']);
  },
);
