import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  MapSessionModule,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionExpiredEvent,
  SessionModule,
  SessionRepository,
} from '@nest-session/core';
import { SessionEventDispatcher } from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { TestClock, SessionEventRecorder, sessionOf, signIn, TestSessionModule } from '@nest-session/testing';
import { createShop, Reminders } from '../support/shop.app.js';

LeakGuard.install();

describe('TestSessionModule', () => {
  let shop: INestApplication;
  let clock: TestClock;
  let events: SessionEventRecorder;

  beforeEach(async () => {
    shop = await createShop();
    clock = shop.get(TestClock);
    events = shop.get(SessionEventRecorder);
  });

  afterEach(() => shop.close());

  it('has a clock that begins now and stands still', async () => {
    const began = clock.now();
    expect(Math.abs(Date.now() - began)).toBeLessThan(60_000);
    const ada = await signIn(shop, { principalName: 'ada' });
    expect((await sessionOf(shop, ada))?.creationTime).toBe(began);
    await clock.advance('1m');
    expect(clock.now()).toBe(began + 60_000);
  });

  it('ends what expires when the clock is advanced, and waits for the handlers', async () => {
    const ada = await signIn(shop, { attributes: { items: ['apple'] } });
    const id = (await sessionOf(shop, ada))?.id;
    await clock.advance('29m');
    expect(shop.get(Reminders).sent).toEqual([]);
    await clock.advance('2m');
    expect(shop.get(Reminders).sent).toEqual([['apple']]);
    expect(events.all(id).map(({ type }) => type)).toEqual(['created', 'expired']);
    expect(await sessionOf(shop, ada)).toBeNull();
    expect((await ada.get('/account')).json()).toEqual({ items: [] });
  });

  it('keeps a session alive that is used', async () => {
    const ada = await signIn(shop, { principalName: 'ada' });
    for (const wait of ['20m', '20m', '20m']) {
      await clock.advance(wait);
      expect((await ada.get('/account')).json()).toMatchObject({ user: 'ada' });
    }
    expect(events.count(SessionExpiredEvent)).toBe(0);
  });

  it('records the events of sessions', async () => {
    const ada = await signIn(shop, { principalName: 'ada' });
    const id = (await sessionOf(shop, ada))?.id;
    await ada.post('/logout');
    const deleted = await events.next(SessionDeletedEvent, id);
    expect(deleted.principalName).toBe('ada');
    expect(events.count(SessionCreatedEvent)).toBe(1);
  });

  it('refuses a number without a unit', async () => {
    await expect(clock.advance(31 as never)).rejects.toThrow(
      "advance(duration) is the bare number 31: name its unit, such as '31s' or '31ms'",
    );
  });

  it('replaces a MapSessionModule', async () => {
    const store = MapSessionModule.forRoot();
    const testing = Test.createTestingModule({ imports: [SessionModule.forRoot(), store] })
      .overrideModule(store)
      .useModule(TestSessionModule.forRoot());
    const app = await (await testing.compile()).init();
    const session = app.get(SessionRepository).createSession();
    session.setAttribute('a', 1);
    await session.save();
    await app.get(TestClock).advance('31m');
    expect(app.get(SessionEventRecorder).count(SessionExpiredEvent)).toBe(1);
    await app.close();
  });

  it('keeps sessions and clocks of two applications apart', async () => {
    const other = await createShop();
    try {
      await signIn(other, { principalName: 'ada' });
      await clock.advance('31m');
      expect(other.get(TestClock).now()).toBeLessThan(clock.now());
      expect(other.get(SessionEventRecorder).count(SessionExpiredEvent)).toBe(0);
      expect(events.all()).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe('SessionEventRecorder', () => {
  it('joins the group of its instance, as any handler does', async () => {
    const shop = await createShop();
    expect(shop.get(SessionEventDispatcher).handlerNames).toContain('SessionEventRecorder.record');
    await shop.close();
  });

  it('records the sessions of all applications that provide it as a value', async () => {
    const recorder = new SessionEventRecorder();
    const open = async () => {
      const imports = [SessionModule.forRoot(), MapSessionModule.forRoot()];
      const providers = [{ provide: SessionEventRecorder, useValue: recorder }];
      const app = (await Test.createTestingModule({ imports, providers }).compile()).createNestApplication();
      await app.init();
      return app;
    };
    const apps = await Promise.all([open(), open()]);
    for (const app of apps) await signIn(app, { principalName: 'ada' });
    await Promise.all(apps.map((app) => app.close()));
    expect(recorder.count(SessionCreatedEvent)).toBe(2);
  });
});

it('TestSessionModule says what is missing without SessionModule', async () => {
  const start = Test.createTestingModule({ imports: [TestSessionModule.forRoot()] }).compile();
  await expect(start).rejects.toThrow(
    'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.',
  );
});
