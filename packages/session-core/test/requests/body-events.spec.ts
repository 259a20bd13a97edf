import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, Server } from 'node:http';
import { Controller, type INestApplication, Injectable, Post, Req } from '@nestjs/common';
import { jest } from '@jest/globals';
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

it('the last events of a request do not wake up the scope of an application that has shut down', async () => {
  let arrived: (request: IncomingMessage) => void;
  const arrival = new Promise<IncomingMessage>((resolve) => (arrived = resolve));
  @Controller()
  class EndlessController {
    @Post('endless')
    wait(@Req() request: IncomingMessage) {
      arrived(request);
      return new Promise(() => undefined);
    }
  }
  const { app, agent } = await startApp({ controllers: [EndlessController, VisitController], providers: [Visits] });
  const refused = expect(agent().post('/endless', 'x')).rejects.toThrow('socket hang up');
  const request = await arrival;
  const end = new Promise((resolve) => request.once('close', resolve));
  const closed = app.close();
  await Promise.resolve();
  (app.getHttpServer() as Server).closeAllConnections();
  await closed;
  const run = jest.spyOn(AsyncLocalStorage.prototype, 'run');
  try {
    await Promise.all([end, refused]);
    expect(run).not.toHaveBeenCalled();
  } finally {
    run.mockRestore();
  }
});
