import type { ServerResponse } from 'node:http';
import { Controller, Get, Post, UseGuards } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, ManualClock } from '@nest-session/testing';
import { KeepSessionIdle, Session } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();

const MINUTE = 60_000;

/** The gate at which a handler waits. */
let hold: Gate;

@Controller()
class PageController {
  @Post('login')
  login(@Session() session: Session) {
    session.principalName = 'ann';
  }

  @Get('page')
  page(@Session() session: Session) {
    return { user: session.principalName ?? 'nobody' };
  }

  @Get('held')
  async held() {
    await hold.pass();
  }

  @Get('denied')
  @UseGuards({ canActivate: () => false })
  denied() {}

  @Get('poll')
  @KeepSessionIdle()
  poll(@Session() session: Session) {
    return { user: session.principalName ?? 'nobody' };
  }
}

@Controller('polls')
@KeepSessionIdle()
class PollController {
  @Get('news')
  news(@Session() session: Session) {
    return { user: session.principalName ?? 'nobody' };
  }

  @Get('opened')
  @KeepSessionIdle(false)
  opened(@Session() session: Session) {
    return { user: session.principalName ?? 'nobody' };
  }

  @Post('saved')
  saved(@Session() session: Session) {
    session.setAttribute('seen', true);
  }

  @Post('counted')
  counted(@Session() session: Session) {
    return session.updateAttribute<number>('count', (count = 0) => count + 1);
  }

  @Post('rotated')
  rotated(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('shortened')
  shortened(@Session() session: Session) {
    session.maxInactiveInterval = 20 * 60;
  }
}

/** Responds, or changes the session of a request without a matching route. */
function middleware(request: { session: Session; url: string }, response: ServerResponse, next: () => void): void {
  if (request.url === '/middleware') response.end('answered');
  else {
    if (request.url === '/nowhere/changed') request.session.setAttribute('lost', true);
    next();
  }
}

afterEach(closeApps);

describe.each(['express', 'fastify'] as const)('a request on %s', (platform) => {
  let clock: ManualClock;
  let store: GatedRepository;
  let client: HttpAgent;

  async function start(session: Parameters<typeof startApp>[0]['session'] = {}): Promise<SessionApp> {
    clock = new ManualClock();
    store = new GatedRepository({ clock, timeout: 1800 });
    const controllers = [PageController, PollController];
    const app = await startApp({ platform, store, controllers, session, configure: (nest) => nest.use(middleware) });
    client = app.agent();
    await client.post('/login');
    // From here on the access of every request is due.
    clock.advance(10 * MINUTE);
    store.calls.length = 0;
    return app;
  }

  /** The only session in the store. */
  const stored = async () => {
    const [session] = await store.findByPrincipalName('ann');
    return session!;
  };

  it.each(['/page', '/denied', '/nowhere', '/middleware', '/polls/opened'])(
    'to %s is an access, and is recorded with one call without delaying the response',
    async (path) => {
      await start();
      const gate = store.gate('touch');
      expect((await client.get(path)).status).toBeLessThan(405);
      expect(store.calls).toEqual(['load', 'touch']);
      gate.open();
      await eventually(async () => expect((await stored()).lastAccessedTime).toBe(clock.now()));
    },
  );

  it('is recorded as an access as soon as its route is known, however long the handler takes', async () => {
    await start();
    hold = new Gate();
    const response = client.get('/held');
    await eventually(async () => expect((await stored()).lastAccessedTime).toBe(clock.now()));
    await hold.reached();
    hold.open();
    expect((await response).status).toBe(200);
    expect(store.calls).toEqual(['load', 'touch']);
  });

  it('that changes the session without a matching route is recorded as an access by its save alone', async () => {
    await start();
    expect((await client.get('/nowhere/changed')).status).toBe(404);
    expect(store.calls).toEqual(['load', 'update']);
    expect(await stored()).toMatchObject({ lastAccessedTime: clock.now() });
  });

  it.each(['/poll', '/polls/news'])('to %s, which keeps the session idle, is not an access', async (path) => {
    await start();
    const { lastAccessedTime } = await stored();
    for (const minutes of [0, 10, 9]) {
      clock.advance(minutes * MINUTE);
      expect((await client.get(path)).json()).toEqual({ user: 'ann' });
    }
    expect(store.calls).toEqual(['load', 'load', 'load']);
    expect(await stored()).toMatchObject({ lastAccessedTime });
    clock.advance(MINUTE);
    expect((await client.get(path)).json()).toEqual({ user: 'nobody' });
  });

  it.each(['/polls/saved', '/polls/counted', '/polls/rotated'])(
    'to %s, which keeps the session idle, saves its changes and does not renew the session',
    async (path) => {
      await start();
      const { lastAccessedTime, id, attributeNames } = await stored();
      expect((await client.post(path)).status).toBe(201);
      expect(store.calls).toEqual(['load', 'update']);
      const session = await stored();
      expect(session.lastAccessedTime).toBe(lastAccessedTime);
      expect([session.id, ...session.attributeNames]).not.toEqual([id, ...attributeNames]);
      clock.advance(20 * MINUTE);
      expect(await store.findByPrincipalName('ann')).toEqual([]);
    },
  );

  it('that keeps the session idle and changes its interval lets the interval count from the last access', async () => {
    await start();
    await client.post('/polls/shortened');
    clock.advance(10 * MINUTE - 1);
    expect(await store.findByPrincipalName('ann')).toHaveLength(1);
    clock.advance(1);
    expect(await store.findByPrincipalName('ann')).toEqual([]);
  });
});
