import type { IncomingMessage } from 'node:http';
import { Controller, type INestApplication, Injectable, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { SessionContext } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Injectable()
class Visits {
  constructor(private readonly context: SessionContext) {}

  async count() {
    return this.context.session.updateAttribute<number>('visits', (visits = 0) => visits + 1);
  }
}

@Controller()
class VisitController {
  constructor(private readonly visits: Visits) {}

  @Post('visits')
  async visit() {
    return { visits: await this.visits.count() };
  }
}

/** Middleware that reads the body itself, as for the signature of a webhook. */
function readBodies(app: INestApplication): void {
  app.use((request: IncomingMessage, _: unknown, next: () => void) => {
    request.resume();
    request.once('end', next);
  });
}

it('services have the session of each request behind middleware that waits for the end of the body', async () => {
  const { agent } = await startApp({
    controllers: [VisitController],
    providers: [Visits],
    configure: readBodies,
  });
  const [ann, bob] = [agent(), agent()];
  const visitsOf = async (client: typeof ann) =>
    (await client.post('/visits', 'x'.repeat(100_000))).json<{ visits: number }>().visits;
  expect([await visitsOf(ann), await visitsOf(ann), await visitsOf(bob)]).toEqual([1, 2, 1]);
  expect(await Promise.all([visitsOf(ann), visitsOf(bob)])).toEqual([3, 2]);
});
