import { Global, Injectable, Inject, type INestApplicationContext, Module, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  OnSessionEvent,
  SessionCreatedEvent,
  SessionExpiredEvent,
  SessionModule,
  SessionRepository,
} from '@nest-session/core';
import {
  deadline,
  DeadlineEvent,
  DeadlineEvents,
  DeadlineModule,
  Deadlines,
  MapDeadlineModule,
  OnDeadline,
} from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import {
  eventually,
  SessionEventRecorder,
  TestClock,
  TestDeadlineModule,
  TestSessionModule,
} from '@nest-session/testing';

LeakGuard.install();

const paymentDue = deadline<{ total: number }>('order.payment-due');
const reminderDue = deadline('order.reminder-due');

/** What happened, and when by the clock of the application. */
@Injectable()
class Diary {
  readonly entries: [what: string, at: number][] = [];

  constructor(@Inject(ModuleRef) private readonly modules: ModuleRef) {}

  note(what: string): void {
    this.entries.push([what, this.modules.get(TestClock, { strict: false }).now()]);
  }
}

/** Slow handlers: a test that does not wait for handlers sees no effect of them. */
@Injectable()
class Orders {
  failures = 0;

  constructor(
    @Inject(Deadlines) private readonly deadlines: Deadlines,
    @Inject(Diary) private readonly diary: Diary,
  ) {}

  @OnDeadline(paymentDue)
  async remind({ key, attempt }: DeadlineEvent<typeof paymentDue>) {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    this.diary.note(`${key} is due, attempt ${attempt}`);
    if (this.failures-- > 0) throw new Error('The mail server is down');
    await this.deadlines.schedule(reminderDue, key, { in: '1h' });
  }

  @OnDeadline(reminderDue)
  async giveUp({ key }: DeadlineEvent<typeof reminderDue>) {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    this.diary.note(`${key} is given up`);
  }
}

@Injectable()
class Visitors {
  constructor(
    @Inject(Deadlines) private readonly deadlines: Deadlines,
    @Inject(Diary) private readonly diary: Diary,
  ) {}

  @OnSessionEvent(SessionExpiredEvent)
  async remind() {
    this.diary.note('a session expired');
    await this.deadlines.schedule(paymentDue, 'abandoned', { in: '20s', data: { total: 0 } });
  }
}

@Global()
@Module({ imports: [DeadlineModule.forRoot(), MapDeadlineModule], providers: [Orders, Diary], exports: [Diary] })
class OrderModule {}

describe('TestDeadlineModule', () => {
  const apps: INestApplicationContext[] = [];

  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  async function start(...imports: NonNullable<Parameters<typeof Module>[0]['imports']>) {
    const testing = Test.createTestingModule({ imports: [OrderModule, ...imports] })
      .overrideModule(MapDeadlineModule)
      .useModule(TestDeadlineModule.forRoot());
    const app = await (await testing.compile()).init();
    apps.push(app);
    const get = <T>(type: Type<T>) => app.get(type);
    const [clock, diary] = [get(TestClock), get(Diary)];
    const begin = clock.now();
    const entries = () => diary.entries.map(([what, at]) => [what, at - begin]);
    return { app, begin, clock, deadlines: get(Deadlines), entries };
  }

  it('has a clock that begins now and stands still', async () => {
    const { begin, clock, deadlines } = await start();
    expect(Math.abs(Date.now() - begin)).toBeLessThan(60_000);
    await deadlines.schedule(paymentDue, '42', { in: '15m', data: { total: 7 } });
    expect(await deadlines.get(paymentDue, '42')).toMatchObject({ dueAt: begin + 900_000, scheduledAt: begin });
    await clock.advance('1m');
    expect(clock.now()).toBe(begin + 60_000);
  });

  it('fires what comes due when the clock is advanced, at its time, and waits for the handlers', async () => {
    const { clock, deadlines, entries } = await start();
    await deadlines.schedule(paymentDue, '42', { in: '15m', data: { total: 7 } });
    await clock.advance('14m');
    expect(entries()).toEqual([]);
    await clock.advance('2m');
    expect(entries()).toEqual([['42 is due, attempt 1', 900_000]]);
  });

  it('fires what a handler schedules within the same time, in the order of the times', async () => {
    const { clock, deadlines, entries } = await start();
    await deadlines.schedule(paymentDue, 'second', { in: '90m', data: { total: 7 } });
    await deadlines.schedule(paymentDue, 'first', { in: '15m', data: { total: 7 } });
    await clock.advance('1d');
    expect(entries()).toEqual([
      ['first is due, attempt 1', 15 * 60_000],
      ['first is given up', 75 * 60_000],
      ['second is due, attempt 1', 90 * 60_000],
      ['second is given up', 150 * 60_000],
    ]);
  });

  it('calls a handler that failed again, with the back-off of one second that doubles', async () => {
    const { app, clock, deadlines, entries } = await start();
    app.get(Orders).failures = 2;
    await deadlines.schedule(paymentDue, '42', { in: '15m', data: { total: 7 } });
    await clock.advance('15m');
    expect(entries()).toEqual([['42 is due, attempt 1', 900_000]]);
    await clock.advance('3s');
    expect(entries().slice(1)).toEqual([
      ['42 is due, attempt 2', 901_000],
      ['42 is due, attempt 3', 903_000],
    ]);
  });

  it('has a dead letter after ten attempts, the last of them 511 s after the first', async () => {
    const { app, clock, deadlines, entries } = await start();
    app.get(Orders).failures = 10;
    await deadlines.schedule(paymentDue, '42', { in: '15m', data: { total: 7 } });
    await clock.advance('1h');
    expect(entries()).toHaveLength(10);
    expect(entries().at(-1)).toEqual(['42 is due, attempt 10', 900_000 + 511_000]);
    const [letter] = await app.get(DeadlineEvents).deadLetters();
    expect(letter).toMatchObject({ handler: 'Orders.remind', attempts: 10, event: { key: '42', data: { total: 7 } } });
  });

  it('fires what is due at once while the clock stands still', async () => {
    const { deadlines, entries } = await start();
    await deadlines.schedule(paymentDue, '42', { at: 0, data: { total: 7 } });
    await eventually(() => expect(entries()).toEqual([['42 is due, attempt 1', 0]]));
  });

  it('moves the time of sessions, too, and lets everything happen in the order of its time', async () => {
    @Module({
      imports: [SessionModule.forRoot({ timeout: '30m' }), TestSessionModule.forRoot()],
      providers: [Visitors],
    })
    class ShopModule {}
    const { app, clock, deadlines, entries } = await start(ShopModule);
    const session = app.get(SessionRepository).createSession();
    session.setAttribute('items', ['apple']);
    await session.save();
    await deadlines.schedule(reminderDue, 'before', { in: '29m' });
    await deadlines.schedule(reminderDue, 'behind', { in: '31m' });
    await clock.advance('31m');
    expect(app.get(SessionEventRecorder).count(SessionExpiredEvent)).toBe(1);
    expect(entries()).toEqual([
      ['before is given up', 29 * 60_000],
      ['a session expired', 30 * 60_000],
      ['abandoned is due, attempt 1', 30 * 60_000 + 20_000],
      ['behind is given up', 31 * 60_000],
    ]);
  });

  it('advances by the sum of durations that are asked for at once', async () => {
    const { begin, clock } = await start();
    await Promise.all([clock.advance('1m'), clock.advance('2m')]);
    expect(clock.now()).toBe(begin + 180_000);
  });

  it('keeps deadlines and clocks of two applications apart', async () => {
    const [one, other] = [await start(), await start()];
    await other.deadlines.schedule(paymentDue, '42', { in: '15m', data: { total: 7 } });
    await one.clock.advance('1h');
    expect(one.entries()).toEqual([]);
    expect(other.entries()).toEqual([]);
    expect(await other.deadlines.count(paymentDue)).toBe(1);
  });

  it('waits for a handler of sessions that a handler of deadlines causes', async () => {
    @Injectable()
    class Guests {
      constructor(@Inject(SessionRepository) private readonly sessions: SessionRepository) {}

      @OnDeadline(reminderDue)
      async begin() {
        const session = this.sessions.createSession();
        session.setAttribute('key', 1);
        await session.save();
      }
    }
    @Injectable()
    class Hosts {
      welcomed = 0;

      @OnSessionEvent(SessionCreatedEvent)
      async welcome() {
        for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
        this.welcomed += 1;
      }
    }
    @Module({
      imports: [SessionModule.forRoot(), TestSessionModule.forRoot()],
      providers: [Guests, Hosts],
    })
    class HotelModule {}
    const { app, clock, deadlines } = await start(HotelModule);
    await deadlines.schedule(reminderDue, 'guest', { in: '1m' });
    await clock.advance('1m');
    expect(app.get(Hosts).welcomed).toBe(1);
  });
});
