import { Injectable, type ModuleMetadata, Scope, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { deadline, DeadlineEvent } from '../../src/deadlines/deadline-event.js';
import { DeadlineModule } from '../../src/deadlines/deadline.module.js';
import { Deadlines, type ScheduleOptions } from '../../src/deadlines/deadlines.js';
import { MapDeadlineModule } from '../../src/deadlines/map-deadline.module.js';
import { OnDeadline } from '../../src/deadlines/deadline-handlers.js';
import { MapSessionModule, SessionModule } from '../../../session-core/src/index.js';

LeakGuard.install();

const visit = deadline<unknown>('visit');

describe('deadline()', () => {
  it.each(['order.payment-due', 'a', '0', 'A:b_c.d-e', 'x'.repeat(100)])('takes the name %s', (name) => {
    expect(deadline(name)).toEqual({ name });
  });

  it.each(['', ' ', 'a b', '.a', '-a', 'ü', 'a{b}', 'a\n', 'x'.repeat(101), undefined, 42, null])(
    'refuses the name %j',
    (name) => {
      expect(() => deadline(name as string)).toThrow(TypeError);
    },
  );
});

describe('@OnDeadline()', () => {
  const decorate =
    (...args: unknown[]) =>
    () =>
      (OnDeadline as (...args: unknown[]) => unknown)(...args);

  it('refuses what deadline() does not return, such as a kind whose file is loaded in a circle', () => {
    expect(decorate(undefined)).toThrow(
      '@OnDeadline() takes what deadline() returns, but got a value of type undefined',
    );
    expect(decorate('visit')).toThrow('@OnDeadline() takes what deadline() returns, but got a value of type string');
    expect(decorate({})).toThrow('@OnDeadline() takes what deadline() returns, but got a value of type object');
  });

  it('refuses options that it does not have', () => {
    expect(decorate(visit, { broadcasts: true })).toThrow(
      '@OnDeadline() has no option "broadcasts": there is only `broadcast`',
    );
    expect(decorate(visit, { broadcast: 'yes' })).toThrow(
      '@OnDeadline() takes true or false as its option `broadcast`',
    );
  });

  it('fails the start on a method of a request-scoped class', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Visits {
      @OnDeadline(visit)
      record() {}
    }
    const imports = [DeadlineModule.forRoot(), MapDeadlineModule];
    const app = await Test.createTestingModule({ imports, providers: [Visits] }).compile();
    await expect(app.init()).rejects.toThrow(
      'DeadlineModule: @OnDeadline cannot be used on Visits.record: its class is request-scoped or transient',
    );
    await app.close().catch(() => undefined);
  });

  it('fails the start on two methods of one name for one kind, and not for two kinds', async () => {
    const listener = (...kinds: Parameters<typeof OnDeadline>[0][]) => {
      class Listener {
        handle() {}
      }
      const method = Object.getOwnPropertyDescriptor(Listener.prototype, 'handle')!;
      for (const kind of kinds) OnDeadline(kind)(Listener.prototype, 'handle', method);
      Injectable()(Listener);
      return Listener;
    };
    const start = async (...providers: Type[]) => {
      const imports = [DeadlineModule.forRoot(), MapDeadlineModule];
      const app = await Test.createTestingModule({ imports, providers }).compile();
      try {
        await app.init();
      } finally {
        await app.close().catch(() => undefined);
      }
    };
    const other = deadline('other');
    await expect(start(listener(visit), listener(other, visit))).rejects.toThrow(
      'DeadlineModule: Listener.handle is a handler of the same event twice, in RootTestModule.',
    );
    await start(listener(visit), listener(other));
  });

  it('warns at the start of an application that has no deadlines, and of no other', async () => {
    class Visits {
      @OnDeadline(visit)
      record() {}
      @OnDeadline(visit, { broadcast: true })
      @OnDeadline(deadline('visitor'))
      watch() {}
    }
    const warnings = async (imports: ModuleMetadata['imports'] = [], providers: Type[] = [Visits]) => {
      const log = new LogRecorder();
      const sessions = [SessionModule.forRoot(), MapSessionModule.forRoot()];
      const module = { module: class AppModule {}, imports: [...sessions, ...imports], providers };
      const app = await NestFactory.createApplicationContext(module, { logger: log, abortOnError: false });
      await app.close();
      return log.matching(/@OnDeadline/);
    };
    expect(await warnings()).toEqual([expect.stringMatching(/^warn Visits\.record, Visits\.watch with @OnDeadline/)]);
    expect(await warnings([], [])).toEqual([]);
    expect(await warnings([MapDeadlineModule])).toEqual([]);
    expect(await warnings([DeadlineModule, MapDeadlineModule])).toEqual([]);
  });
});

describe('Deadlines', () => {
  let app: TestingModule;
  let deadlines: Deadlines;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [DeadlineModule.forRoot(), MapDeadlineModule] }).compile();
    await app.init();
    deadlines = app.get(Deadlines);
  });

  afterAll(() => app.close());

  it.each<[string, unknown, string]>([
    ['no time', {}, 'A deadline needs either `in`'],
    ['two times', { in: '1m', at: 0 }, 'A deadline needs either `in`'],
    ['a bare number', { in: 15 }, '`in` is the bare number 15: name its unit'],
    ['no duration', { in: 'soon' }, '`in` is not a duration'],
    ['a negative duration', { in: '-1m' }, '`in` is not a duration'],
    ['too long a duration', { in: '2000000d' }, '`in` must end before the year 6000'],
    ['an invalid Date', { at: new Date(Number.NaN) }, '`at` must be a Date or epoch milliseconds'],
    ['a time before 1970', { at: -1 }, '`at` must be a Date or epoch milliseconds'],
    ['a time in microseconds', { at: Date.now() * 1000 }, '`at` must be a Date or epoch milliseconds'],
    ['null', null, 'must be an object, not null'],
    ['undefined', undefined, 'must be an object, not undefined'],
    ['a text', '1m', 'must be an object, not string'],
    ['a list', ['1m'], 'must be an object, not array'],
    ['a text as a time', { at: '2026-01-01' }, '`at` must be a Date or epoch milliseconds'],
  ])('refuses %s', async (_, time, message) => {
    const options = time as ScheduleOptions<unknown>;
    await expect(deadlines.schedule(visit, 'a', options)).rejects.toThrow(message);
    await expect(deadlines.reschedule(visit, 'a', options)).rejects.toThrow(message);
    expect(await deadlines.count(visit)).toBe(0);
  });

  it('refuses another word as ifExists', async () => {
    const options = { in: '1m', ifExists: 'ignore' } as unknown as ScheduleOptions<unknown>;
    await expect(deadlines.schedule(visit, 'a', options)).rejects.toThrow(
      '`ifExists` must be one of replace, keep, earlier, later',
    );
  });

  it('refuses arguments of another type by a TypeError that says which', async () => {
    const wrong = [undefined, null, 5, {}, ['a']] as never[];
    for (const key of wrong) {
      const calls = [
        () => deadlines.schedule(visit, key, { in: '1m' }),
        () => deadlines.scheduleMany(visit, [{ key, in: '1m' }]),
        () => deadlines.reschedule(visit, key, { in: '1m' }),
        () => deadlines.cancel(visit, key),
        () => deadlines.get(visit, key),
      ];
      for (const call of calls) await expect(call()).rejects.toThrow(/^The key of a deadline must be a string, not /);
    }
    for (const list of [undefined, null, 'a', {}] as never[])
      await expect(deadlines.scheduleMany(visit, list)).rejects.toThrow(/^The second argument must be an array/);
    for (const each of [undefined, null, 'a', []] as never[])
      await expect(deadlines.scheduleMany(visit, [each])).rejects.toThrow(/^A deadline must be an object, not /);
    for (const options of [null, 'a', []] as never[])
      await expect(deadlines.list(visit, options)).rejects.toThrow(/^The second argument must be an object, not /);
    for (const after of [null, 'a', 0] as never[])
      await expect(deadlines.list(visit, { after })).rejects.toThrow(/^`after` must be an object, not /);
    expect(await deadlines.count(visit)).toBe(0);
  });

  it('schedules under the key that it is called with, whatever key its options have', async () => {
    const reminder = deadline<string>('reminder');
    await deadlines.schedule(reminder, 'ann', { in: '1d', data: 'of ann' });
    // As the body of a request, which its client has chosen.
    const options: ScheduleOptions<string> = JSON.parse('{"in":"2d","data":"of bob","key":"ann","id":"x","kind":"y"}');
    expect(await deadlines.schedule(reminder, 'bob', options)).toBe('scheduled');
    const found = await Promise.all(['ann', 'bob'].map((key) => deadlines.get(reminder, key)));
    expect(found.map((each) => each?.data)).toEqual(['of ann', 'of bob']);
    for (const key of ['ann', 'bob']) await deadlines.cancel(reminder, key);
  });

  it('refuses what is no kind', async () => {
    for (const kind of ['visit', undefined, {}, { name: '' }]) {
      const calls = [
        () => deadlines.schedule(kind as never, 'a', { in: '1m' }),
        () => deadlines.scheduleMany(kind as never, []),
        () => deadlines.reschedule(kind as never, 'a', { in: '1m' }),
        () => deadlines.cancel(kind as never, 'a'),
        () => deadlines.get(kind as never, 'a'),
        () => deadlines.count(kind as never),
        () => deadlines.list(kind as never),
      ];
      for (const call of calls)
        await expect(call()).rejects.toThrow('The first argument must be what deadline() returns');
    }
  });

  it.each([0, -1, 1.5, 1001, Number.NaN, '5'])('refuses to list %j', async (limit) => {
    await expect(deadlines.list(visit, { limit: limit as number })).rejects.toThrow(
      '`limit` must be a whole number from 1 to 1000',
    );
  });

  it('refuses other instants in list()', async () => {
    await expect(deadlines.list(visit, { before: Number.NaN })).rejects.toThrow('`before` must be a Date');
    await expect(deadlines.list(visit, { after: { key: 'a', dueAt: Number.NaN } })).rejects.toThrow(
      '`after.dueAt` must be a Date',
    );
  });

  it('schedules no part of many when an argument is wrong', async () => {
    const many = [
      { key: 'a', in: '1m' },
      { key: '', in: '1m' },
    ];
    await expect(deadlines.scheduleMany(visit, many)).rejects.toThrow('1 to 1024 bytes, not 0');
    expect(await deadlines.count(visit)).toBe(0);
  });

  it('rounds an instant up, so that nothing comes early', async () => {
    const at = Date.now() + 3_600_000;
    await deadlines.schedule(visit, 'a', { at: at + 0.25 });
    expect((await deadlines.get(visit, 'a'))?.dueAt).toBe(at + 1);
    await deadlines.cancel(visit, 'a');
  });
});

describe('DeadlineEvent', () => {
  const facts = { id: '1', name: 'visit', key: 'a', dueAt: 1000 };

  it('can be made for a test of a handler', () => {
    const event = new DeadlineEvent<typeof visit>({ ...facts, at: 1250, data: { n: 1 } });
    expect(event).toMatchObject({ ...facts, at: 1250, data: { n: 1 }, attempt: 1, late: 250, traceparent: undefined });
  });

  it('is not late where a clock was set back', () => {
    expect(new DeadlineEvent({ ...facts, at: 900, data: undefined }).late).toBe(0);
  });

  it('reads its data when it is asked for them', () => {
    const event = new DeadlineEvent<typeof visit>({
      ...facts,
      at: 1000,
      get data(): unknown {
        throw new Error('They cannot be read');
      },
    });
    expect(event.key).toBe('a');
    expect(() => event.data).toThrow('They cannot be read');
  });
});
