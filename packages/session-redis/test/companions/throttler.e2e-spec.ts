import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { CompanionProcess } from '../support/companion.process.js';

LeakGuard.install();

let server: RedisServer;
let app: CompanionProcess;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
afterEach(() => app.stop());

it.each(['express', 'fastify'] as const)('@nestjs/throttler limits requests by session, on %s', async (adapter) => {
  app = await CompanionProcess.start({ name: 'throttler', adapter, redisUrl: server.url });
  const [ada, bob] = [app.agent(), app.agent()];
  const visit = async (agent: HttpAgent) => (await agent.get('/visit')).status;
  expect([await visit(ada), await visit(ada), await visit(ada)]).toEqual([200, 200, 429]);
  expect([await visit(bob), await visit(bob)]).toEqual([200, 200]);
});
