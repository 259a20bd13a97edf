import { AsyncLocalStorage } from 'node:async_hooks';
import { jest } from '@jest/globals';
import { Injectable, type INestApplicationContext, Module, type Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Gate, LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, ManualClock, TestClock, TestDeadlineModule } from '@nest-session/testing';
import { deadline, type DeadlineEvent } from '../../src/deadlines/deadline-event.js';
import { DeadlineEvents } from '../../src/deadlines/deadline-event-groups.js';
import { DeadlineModule } from '../../src/deadlines/deadline.module.js';
import { DeadlineStore } from '../../src/deadlines/deadline.store.js';
import { Deadlines } from '../../src/deadlines/deadlines.js';
import {
  MAP_DEADLINE_CLOCK,
  MapDeadlineModule,
  type MapDeadlineModuleOptions,
} from '../../src/deadlines/map-deadline.module.js';

import { OnDeadline } from '../../src/deadlines/deadline-handlers.js';
import { JsonAttributeSerializer } from '../../../session-core/src/session/json-attribute.serializer.js';

LeakGuard.install();

const visit = deadline<unknown>('visit');

@Injectable()
class Visits {
  readonly events: DeadlineEvent[] = [];

  @OnDeadline(visit)
  record(event: DeadlineEvent<typeof visit>) {
    this.events.push(event);
  }
}

class Marked extends JsonAttributeSerializer {
  override serialize = (value: unknown) => `v1:${super.serialize(value)}`;
  override deserialize = (text: string) => {
    if (!text.startsWith('v1:')) throw new Error('It is not mine');
    return super.deserialize(text.slice(3));
  };
}

describe('MapDeadlineModule', () => {
  const apps: INestApplicationContext[] = [];
  let log: LogRecorder;

  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  async function start(
    store: typeof MapDeadlineModule | ReturnType<typeof MapDeadlineModule.forRoot> = MapDeadlineModule,
    providers: Provider[] = [Visits],
    clock: { now(): number } = Date,
  ): Promise<INestApplicationContext> {
    log = new LogRecorder();
    const testing = Test.createTestingModule({ imports: [DeadlineModule.forRoot(), store], providers });
    if (clock !== Date) testing.overrideProvider(MAP_DEADLINE_CLOCK).useValue(clock);
    const app = (await testing.setLogger(log).compile()) as INestApplicationContext;
    apps.push(app);
    return app.init();
  }

  it('calls no handler on behalf of the request that has scheduled the deadline', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    @Injectable()
    class Mails {
      @OnDeadline(visit)
      send() {
        seen.push(requests.getStore());
      }
    }
    const app = await start(MapDeadlineModule, [Mails]);
    await requests.run('of ann', () => app.get(Deadlines).schedule(visit, 'a', { in: 0, data: {} }));
    await eventually(() => seen.length === 1);
    expect(seen).toEqual([undefined]);
  });

  it('uses the serializer it is given', async () => {
    const app = await start(MapDeadlineModule.forRoot({ serializer: new Marked() }));
    await app.get(Deadlines).schedule(visit, 'a', { in: 0, data: { n: 1 } });
    await eventually(() => expect(app.get(Visits).events).toHaveLength(1));
    expect(app.get(Visits).events[0]?.data).toEqual({ n: 1 });
  });

  it('names all wrong options at the start', async () => {
    const options = { serialiser: {}, serializer: JSON } as unknown as MapDeadlineModuleOptions;
    await expect(start(MapDeadlineModule.forRoot(options))).rejects.toThrow(
      'MapDeadlineModule: Option `serializer` must be an AttributeSerializer. Unknown option `serialiser`: known are',
    );
  });

  it('is missed at the start, with what to import', async () => {
    const alone = Test.createTestingModule({ imports: [DeadlineModule.forRoot()] }).compile();
    await expect(alone).rejects.toThrow(
      /^DeadlineModule: It has no store: add RedisDeadlineModule.* or MapDeadlineModule/,
    );
  });

  it('fires what was scheduled before the application started', async () => {
    const imports = [DeadlineModule.forRoot(), MapDeadlineModule];
    const app = await Test.createTestingModule({ imports, providers: [Visits] }).compile();
    apps.push(app);
    await app.get(Deadlines).schedule(visit, 'a', { in: 0 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(app.get(Visits).events).toEqual([]);
    await app.init();
    await eventually(() => expect(app.get(Visits).events).toHaveLength(1));
  });

  it('sleeps until the next one is due, and has no timer while nothing waits', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout');
    try {
      const app = await start();
      const deadlines = app.get(Deadlines);
      expect(timers.mock.calls).toEqual([]);
      await deadlines.schedule(visit, 'a', { in: '300ms' });
      await deadlines.schedule(deadline('unhandled'), 'a', { in: '10ms' });
      const waits = timers.mock.calls.map(([, wait]) => wait!);
      expect(Math.min(...waits)).toBeGreaterThan(200);
      await deadlines.cancel(visit, 'a');
      timers.mockClear();
      await deadlines.schedule(deadline('unhandled'), 'b', { in: '10ms' });
      expect(timers.mock.calls).toEqual([]);
    } finally {
      timers.mockRestore();
    }
  });

  it('notices within a second that the clock was set forward', async () => {
    const clock = new ManualClock();
    const app = await start(MapDeadlineModule, [Visits], clock);
    await app.get(Deadlines).schedule(visit, 'a', { in: '1h' });
    clock.advance(3_600_000);
    await eventually(() => expect(app.get(Visits).events).toHaveLength(1), { timeout: 5000 });
    expect(app.get(Visits).events[0]?.late).toBe(0);
  });

  it('waits at shutdown for handlers that run, and fires nothing more', async () => {
    const gate = new Gate();
    @Injectable()
    class Slow {
      readonly finished: string[] = [];

      @OnDeadline(visit)
      async record({ key }: DeadlineEvent<typeof visit>) {
        await gate.pass();
        this.finished.push(key);
      }
    }
    const app = await start(MapDeadlineModule, [Slow]);
    const [{ finished }, deadlines] = [app.get(Slow), app.get(Deadlines)];
    await deadlines.schedule(visit, 'a', { in: 0 });
    await gate.reached();
    await deadlines.schedule(visit, 'b', { in: '20ms' });
    const closed = app.close();
    setTimeout(() => gate.open(), 60);
    await closed;
    expect(finished).toEqual(['a']);
    expect(await deadlines.count(visit)).toBe(1);
  });

  it('lets a handler fail that cannot read its data, and keeps them in the dead letter', async () => {
    const serializer = new Marked();
    @Injectable()
    class Reader {
      readonly read: unknown[] = [];

      @OnDeadline(visit)
      record({ data }: DeadlineEvent<typeof visit>) {
        this.read.push(data);
      }
    }
    const app = await start(TestDeadlineModule.forRoot({ serializer }), [Reader]);
    serializer.serialize = (value) => JSON.stringify(value);
    await app.get(Deadlines).schedule(visit, 'a', { in: '1m', data: 'secret' });
    await expect(app.get(Deadlines).get(visit, 'a')).rejects.toThrow(
      'The data of a deadline "visit" cannot be read: another serializer may have written them',
    );
    await app.get(TestClock).advance('1h');
    expect(app.get(Reader).read).toEqual([]);
    const [letter] = await app.get(DeadlineEvents).deadLetters();
    expect(letter?.reason).toMatch(/^Reader\.record: DeadlineDataError/);
    expect(() => letter?.event?.data).toThrow('cannot be read');
    serializer.deserialize = (text) => JSON.parse(text) as unknown;
    await app.get(DeadlineEvents).replayAll();
    await app.get(TestClock).advance(0);
    expect(app.get(Reader).read).toEqual(['secret']);
    expect(log.lines.length).toBeGreaterThan(0);
    expect(log.lines.join('\n')).not.toContain('secret');
  });

  it('answers fired for an hour', async () => {
    const app = await start(TestDeadlineModule.forRoot());
    const [clock, deadlines] = [app.get(TestClock), app.get(Deadlines)];
    await deadlines.schedule(visit, 'a', { in: '1m' });
    await clock.advance('60m');
    expect(await deadlines.cancel(visit, 'a')).toBe('fired');
    await clock.advance('1m');
    expect(await deadlines.cancel(visit, 'a')).toBe('none');
    expect(await deadlines.reschedule(visit, 'a', { in: '1m' })).toBe('none');
  });

  it('has no group without a handler, and none but its own', async () => {
    const events = (await start(MapDeadlineModule, [])).get(DeadlineEvents);
    expect(await events.list()).toEqual([]);
    expect(await events.remove('default')).toBe('unknown');
    const own = (await start()).get(DeadlineEvents);
    expect(await own.list()).toMatchObject([{ name: 'default' }]);
    await expect(own.create('mail')).rejects.toThrow('Deadlines in memory have one group, "default"');
  });

  it('keeps the last 1,000 dead letters, and counts those before', async () => {
    @Injectable()
    class Failing {
      @OnDeadline(visit)
      fail() {
        throw new Error('Nobody is at home');
      }
    }
    const app = await start(TestDeadlineModule.forRoot(), [Failing]);
    const all = Array.from({ length: 1002 }, (_, i) => ({ key: `${i}`, in: `${i + 1}s` }));
    await app.get(Deadlines).scheduleMany(visit, all);
    await app.get(TestClock).advance('1d');
    const events = app.get(DeadlineEvents);
    const letters = await events.deadLetters({ limit: 2000 });
    expect(letters).toHaveLength(1000);
    expect(letters[0]?.event?.key).toBe('2');
    expect((await events.list())[0]?.lostDeadLetters).toBe(2);
  });

  it('keeps a deadline whose handler throws something without a text', async () => {
    @Injectable()
    class Failing {
      @OnDeadline(visit)
      fail() {
        throw Object.create(null);
      }
    }
    const app = await start(TestDeadlineModule.forRoot(), [Failing]);
    await app.get(Deadlines).schedule(visit, 'a', { in: '1m' });
    await app.get(TestClock).advance('1h');
    expect(await app.get(DeadlineEvents).deadLetters()).toMatchObject([
      { reason: 'Failing.fail: a value without a text', attempts: 10, event: { key: 'a' } },
    ]);
  });

  it('is not the second store of an application', async () => {
    @Module({ providers: [{ provide: DeadlineStore, useValue: {} }], exports: [DeadlineStore] })
    class OtherModule {}
    const imports = [DeadlineModule.forRoot(), OtherModule, MapDeadlineModule];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(
      'There are several stores for the deadlines: OtherModule and MapDeadlineModule. Import one of them, once.',
    );
  });
});
