import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
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
  'nestjs-pino logs the id of the session, and no token where the cookies are redacted, on %s',
  async (adapter) => {
    app = await CompanionProcess.start({ name: 'nestjs-pino', adapter, redisUrl: server.url });
    const browser = app.agent();
    const { id } = (await browser.post('/visit')).json<{ id: string }>();
    await browser.get('/visit');
    const requests = () => app.lines.filter((line) => line.includes('request completed'));
    await eventually(() => expect(requests()).toHaveLength(2));
    expect(requests().map((line) => JSON.parse(line).sessionId)).toEqual([id, id]);
    expect(requests()[1]).toContain('"cookie":"[Redacted]"');
    expect(app.lines.join('\n')).not.toContain(browser.cookie('SESSION'));
  },
);
