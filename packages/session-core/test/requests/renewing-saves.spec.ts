import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock, sessionOf } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { TrackedSession } from '../../src/internal.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();

// Milliseconds by the clock of this process, longer than the interval of the test that uses it.
const HANDLED = 40;
const MINUTE = 60_000;

@Controller()
class TestController {
  @Get('save')
  save(@Session() session: Session) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
  }

  @Get('update')
  update(@Session() session: Session) {
    return session.updateAttribute<number>('visits', (visits = 0) => visits + 1);
  }

  @Get('timeout')
  setTimeout(@Session() session: Session) {
    session.maxInactiveInterval = 1200;
  }

  @Get('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ada');
  }

  @Get('slow')
  async slow(@Session() session: Session) {
    const begun = performance.now();
    while (performance.now() - begun < HANDLED) await delay(1);
    session.setAttribute('visits', 0);
  }
}

afterEach(closeApps);

/** A client with a new session, and when that was last renewed after another request, in ms since it began. */
async function visited(options: Partial<SessionAppOptions> = {}) {
  const clock = new ManualClock();
  const store = new GatedRepository({ clock, timeout: 1800 });
  const { app, agent } = await startApp({ controllers: [TestController], store, ...options });
  const client = agent();
  await client.get('/save');
  const begun = clock.now();
  const renewedBy = async (path: string, after: number) => {
    clock.advance(after);
    await client.get(path);
    return (await sessionOf(app, client))!.lastAccessedTime - begun;
  };
  return { renewedBy, visits: async () => (await sessionOf(app, client))?.getAttribute<number>('visits') };
}

// The time that a request takes counts towards the interval: a minute is left, so that a slow machine is no renewal.
it.each(['/save', '/update'])('a save of attributes renews a session once per touchInterval: %s', async (path) => {
  const { renewedBy, visits } = await visited({ session: { touchInterval: '10m' } });
  expect(await renewedBy(path, 5 * MINUTE)).toBe(0);
  expect(await renewedBy(path, 4 * MINUTE)).toBe(0);
  expect(await renewedBy(path, MINUTE)).toBe(10 * MINUTE);
  expect(await renewedBy(path, 9 * MINUTE)).toBe(10 * MINUTE);
  expect(await visits()).toBe(5);
});

it.each(['/timeout', '/sign-in'])('another save renews it in any case: %s', async (path) => {
  const { renewedBy } = await visited();
  expect(await renewedBy(path, 1000)).toBe(1000);
});

it('renews it with each save where touchInterval is 0', async () => {
  const { renewedBy } = await visited({ session: { touchInterval: 0 } });
  expect(await renewedBy('/save', 1)).toBe(1);
});

it('renews it with the next save once a request has given it a shorter timeout', async () => {
  const clock = new ManualClock();
  const store = new GatedRepository({ clock, timeout: 1800 });
  const visitor = store.createSession();
  visitor.setAttribute('visits', 1);
  await visitor.save();
  const session = TrackedSession.of((await store.findById(visitor.id))!);
  // As of a request that is not due to renew it.
  session.keepIdleFor(MINUTE);
  session.maxInactiveInterval = 10;
  await session.save();
  for (const visits of [2, 3]) {
    clock.advance(9000);
    session.setAttribute('visits', visits);
    expect(await session.save()).toBe('saved');
  }
});

it('renews it when the interval passes while the request is handled', async () => {
  const { renewedBy } = await visited({ session: { touchInterval: `${HANDLED / 2}ms` } });
  expect(await renewedBy('/slow', 1)).toBe(1);
});
