import { jest } from '@jest/globals';
import { Controller, Inject, Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionModule, SessionRepository, SessionStoreError } from '@nest-session/core';
import {
  KeyspaceNotificationListener,
  OnRedisEvent,
  type RedisEvent,
  RedisEventDataError,
  RedisEvents,
  RedisEventsModule,
  type RedisEventsModuleOptions,
  type RedisEventsOptionsFactory,
} from '@nest-session/redis-events';
import { eventChannel } from '@nest-session/core/telemetry';
import { RedisSessionModule } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { withAllRights } from '../../../session-redis/test/support/with-all-rights.js';
import { Cleanup } from '../../src/cleanup/cleanup.job.js';
import { connectionToken } from '../../src/connection/redis-connections.js';
import type { RequestNodes } from '../../src/connection/redis-nodes.js';
import { EventsInstance } from '../support/events.instance.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
let running: EventsInstance[];
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(async () => {
  running = [];
  EventsInstance.log.lines.length = 0;
  await client.flushall();
});
afterEach(() => Promise.all(running.map((each) => each.stop())));
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

type Options = Partial<Parameters<typeof EventsInstance.start>[0]>;

async function start({ events, ...options }: Options = {}): Promise<EventsInstance> {
  const instance = await EventsInstance.start({
    events: { url: server.url, ...events },
    handles: ['paid'],
    ...options,
  });
  running.push(instance);
  return instance;
}

async function stop(instance: EventsInstance): Promise<void> {
  running.splice(running.indexOf(instance), 1);
  await instance.stop();
}

function refusal(metadata: ModuleMetadata) {
  const start = NestFactory.createApplicationContext(
    { module: class {}, ...metadata },
    { logger: false, abortOnError: false },
  );
  return expect(
    start.then(async (app) => {
      await app.close();
      return 'started';
    }),
  ).rejects.toThrow;
}

describe.each([1, 4])('with %i partitions', (partitions) => {
  const events = { partitions };
  const startOne = ({ events: own, ...options }: Options = {}) => start({ events: { ...events, ...own }, ...options });

  it('an event is handled once by each group, however many instances share it', async () => {
    const mailers = [await startOne(), await startOne()];
    const billing = await startOne({ events: { events: { group: 'billing' } } });
    const ids: string[] = [];
    for (let i = 0; i < 50; i++) ids.push(await mailers[0]!.events.record('paid', { order: i }));
    await eventually(() => {
      expect(mailers.flatMap((each) => each.ids).toSorted()).toEqual(ids.toSorted());
      expect(billing.ids.toSorted()).toEqual(ids.toSorted());
    });
    expect(billing.handled.find(({ id }) => id === ids[7])).toMatchObject({
      type: 'paid',
      data: { order: 7 },
      attempt: 1,
      traceparent: undefined,
    });
    const [seconds] = await client.time();
    expect(Math.abs(billing.handled[0]!.at - Number(seconds) * 1000)).toBeLessThan(60_000);
  });

  it('a receiver that comes back gets what it has missed, and a new group what is kept', async () => {
    const sender = await startOne({ handles: [] });
    const first = await startOne();
    await stop(first);
    const ids = [await sender.events.record('paid', 1), await sender.events.record('paid')];
    await sender.trim();
    expect(await sender.groups.list()).toMatchObject([{ name: 'default', lag: 2, pending: 0, dropped: 0 }]);

    const back = await startOne();
    await eventually(() => expect(back.ids.toSorted()).toEqual(ids.toSorted()));
    expect(new Set(back.handled.map(({ data }) => data))).toEqual(new Set([1, undefined]));
    const late = await startOne({ events: { events: { group: 'late' } } });
    await eventually(() => expect(late.ids.toSorted()).toEqual(ids.toSorted()));
    await eventually(async () =>
      expect(await sender.groups.list()).toMatchObject([
        { name: 'default', lag: 0, pending: 0 },
        { name: 'late', lag: 0, pending: 0 },
      ]),
    );
  });

  it('a poison event is retried, becomes a dead letter of its group, and holds up no other one', async () => {
    const instance = await startOne({ events: { events: { attempts: 3 } } });
    instance.failures = 3;
    const poison = await instance.events.record('paid', 'poison');
    const letter = await eventually(async () => {
      const [found] = await instance.groups.deadLetters();
      expect(found).toBeDefined();
      return found!;
    });
    expect(letter).toMatchObject({ group: 'default', handler: 'Handler.handle', attempts: 3, succeeded: [] });
    expect(letter.event).toMatchObject({ id: poison, type: 'paid', data: 'poison' });
    const sound = await instance.events.record('paid', 'sound');
    await eventually(() => expect(instance.ids).toEqual([sound]));
    expect(EventsInstance.log.matching(/failed in attempt/)).toHaveLength(2);
    expect(EventsInstance.log.matching(/dead letter now/)).toEqual([
      `error Event "paid" (${poison}) is a dead letter now, see RedisEventGroups: "Handler.handle: Error: not now" undefined RedisSession`,
    ]);

    expect(await instance.groups.replay(letter.id)).toBe('replayed');
    await eventually(() => expect(instance.ids).toEqual([sound, poison]));
    expect(instance.handled[1]).toMatchObject({ attempt: 1, data: 'poison' });
    expect(await instance.groups.deadLetters()).toEqual([]);
    expect(await instance.groups.discardAll()).toBe(0);
  });

  it('a broadcast handler is called on every instance, and a type that nobody handles on none', async () => {
    const both = [await startOne({ hears: ['paid', 'scanned'] }), await startOne({ hears: ['paid', 'scanned'] })];
    const ids = [await both[0]!.events.record('paid'), await both[1]!.events.record('scanned')];
    await both[0]!.events.record('ignored');
    for (const { heard } of both)
      await eventually(() => expect(heard.map(({ id }) => id).toSorted()).toEqual(ids.toSorted()));
    await eventually(async () => expect(await both[0]!.groups.list()).toMatchObject([{ lag: 0, pending: 0 }]));
    expect(both.flatMap((each) => each.ids)).toEqual([ids[0]]);
    expect(EventsInstance.log.lines).toEqual([]);
  });

  it('an instance without the handler of an event leaves it to another one of the group', async () => {
    const old = await startOne({ handles: ['paid'] });
    const next = await startOne({ handles: ['paid', 'refunded'] });
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push(await old.events.record('refunded'));
    await eventually(() => expect(next.ids.toSorted()).toEqual(ids.toSorted()));
    expect(old.ids).toEqual([]);
  });
});

it('record() is one command, on the connection of requests', async () => {
  const { nest, events } = await start({ handles: [] });
  await events.record('paid');
  const [request] = nest.get<RequestNodes>(connectionToken('request'), { strict: false }).all;
  const send = jest.spyOn(request!, 'sendCommand');
  await events.record('paid', { order: 1 });
  expect(send.mock.calls.map(([{ name }]) => name)).toEqual(['evalsha']);
});

it('an outage fails record(), and handlers get what was recorded before it and after it', async () => {
  const durable = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const events: RedisEventsModuleOptions = { url: durable.url, commandTimeout: '300ms' };
  const receiver = await start({ events });
  const sender = await start({ events, handles: [] });
  try {
    const before = await sender.events.record('paid', 'before');
    await eventually(() => expect(receiver.ids).toEqual([before]));
    await stop(receiver);
    const missed = await sender.events.record('paid', 'missed');
    await durable.kill();
    const outage = sender.events.record('paid', 'lost');
    await expect(outage).rejects.toThrow(SessionStoreError);
    await expect(outage).rejects.toThrow('Redis did not reply within 300 ms');
    await durable.restart();
    const back = await start({ events: { ...events, commandTimeout: '30s' } });
    await eventually(() => expect(back.ids).toEqual([missed]));
    const after = await eventually(() => sender.events.record('paid', 'after'));
    await eventually(() => expect(back.ids).toEqual([missed, after]));
  } finally {
    await Promise.all(running.splice(0).map((each) => each.stop()));
    await durable.stop();
  }
});

it('a shutdown waits for the handler that runs, and leaves the others to those that stay', async () => {
  const gate = new Gate();
  const order: unknown[] = [];
  @Injectable()
  class Slow {
    @OnRedisEvent('paid')
    async handle({ data }: RedisEvent) {
      await gate.pass();
      order.push(data);
    }
  }
  const leaving = await start({ handles: [], providers: [Slow], events: { events: { concurrency: 1 } } });
  await leaving.events.record('paid', 'first');
  await gate.reached();
  const staying = await start();
  const stopped = stop(leaving).then(() => order.push('stopped'));
  const second = await staying.events.record('paid', 'second');
  await eventually(() => expect(staying.ids).toEqual([second]));
  expect(order).toEqual([]);
  gate.open();
  await stopped;
  expect(order).toEqual(['first', 'stopped']);
});

it('the cleanup removes what all groups have handled, after the grace period, and keeps what one has not', async () => {
  const receiver = await start();
  const id = await receiver.events.record('paid');
  await eventually(() => expect(receiver.ids).toEqual([id]));
  const cleanup = receiver.nest.get(Cleanup, { strict: false });
  expect(cleanup.sweeper.what).toBe('events');
  // As if it had been recorded six minutes ago.
  const [[, fields]] = (await client.xrange('nest:events:events', '-', '+')) as [[string, string[]]];
  await client.del('nest:events:events');
  await stop(receiver);
  const old = `${Date.now() - 360_000}-0`;
  await client.xadd('nest:events:events', old, ...fields);
  const back = await start();
  await eventually(() => expect(back.ids).toEqual([id]));
  await eventually(async () => expect(await back.groups.list()).toMatchObject([{ lag: 0, pending: 0 }]));
  await back.groups.create('away');
  await back.trim();
  expect(await client.xlen('nest:events:events')).toBe(1);
  expect(await back.groups.remove('away')).toBe('removed');
  await back.trim();
  expect(await client.xlen('nest:events:events')).toBe(0);
});

describe('beside RedisSessionModule', () => {
  const sessions = (options = {}) => [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({ url: withAllRights(server.url), commandTimeout: '30s', ...options }),
  ];

  it('shares its connections without an address, and both work', async () => {
    const both = await EventsInstance.start({ events: {}, handles: ['paid'], imports: sessions() });
    running.push(both);
    const id = await both.events.record('paid', 7);
    await eventually(() => expect(both.ids).toEqual([id]));
    const repository = both.nest.get(SessionRepository);
    const session = repository.createSession();
    session.setAttribute('user', 'ada');
    await repository.save(session);
    expect(await client.keys('nest:session:sessions:*')).not.toEqual([]);
    const names = [...String(await client.client('LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name);
    expect(names).not.toContain('nest:events:request');
    expect(names).toContain('nest:events:reader');
  });

  it('refuses the namespace of sessions, and sessions refuse that of events', async () => {
    const app = await start();
    await refusal({ imports: sessions({ namespace: 'nest:events', requireAtStart: true }) })(
      'The sessions in namespace "nest:events" cannot be kept there, because it holds events: use another namespace',
    );
    await stop(app);
    const both = await start({ imports: sessions(), events: { namespace: 'own' } });
    await refusal({ imports: [RedisEventsModule.forRoot({ url: server.url, namespace: 'nest:session' })] })(
      'RedisEventsModule: The events in namespace "nest:session" cannot be kept there, because it holds sessions',
    );
    await stop(both);
  });

  it('the listener is that of the module that is imported first', async () => {
    @Injectable()
    class Reservations {
      constructor(@Inject(KeyspaceNotificationListener) readonly listener: KeyspaceNotificationListener) {}
    }
    @Module({ providers: [Reservations] })
    class FeatureModule {}
    const other = await RedisServer.start();
    const ofEvents = RedisEventsModule.forRoot({ url: withAllRights(other.url) });
    for (const [imports, expected] of [
      [[ofEvents, ...sessions(), FeatureModule], other.url],
      [[...sessions(), ofEvents, FeatureModule], server.url],
    ] as const) {
      const app = await NestFactory.createApplicationContext(
        { module: class {}, imports: [...imports] },
        { logger: false, abortOnError: false },
      );
      const heard: string[] = [];
      const { listener } = app.get(Reservations);
      listener.listen({ events: 'expired', keys: 'seat:*', handler: ({ key }) => void heard.push(key) });
      await eventually(() => expect(listener.health.state).toBe('listening'));
      const at = new Redis(expected);
      await at.set('seat:1', '', 'PX', 10);
      await eventually(async () => {
        await at.exists('seat:1');
        expect(heard).toEqual(['seat:1']);
      });
      at.disconnect();
      await app.close();
    }
    await other.stop();
  });
});

it('the listener works without sessions, and opens no connection before its first subscription', async () => {
  const { nest } = await start({ handles: [], events: { url: withAllRights(server.url) } });
  const names = async () => [...String(await client.client('LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name);
  expect(await names()).not.toContain('nest:events:notifications');
  const heard: string[] = [];
  const listener = nest.get(KeyspaceNotificationListener);
  listener.listen({ events: 'expired', keys: 'seat:*', handler: ({ key }) => void heard.push(key) });
  await eventually(() => expect(listener.health.state).toBe('listening'));
  await client.set('seat:7', '', 'PX', 10);
  await eventually(async () => {
    await client.exists('seat:7');
    expect(heard).toEqual(['seat:7']);
  });
});

describe('what cannot be meant', () => {
  it.each([
    ['', /"" *$/],
    ['two words', /"two words"/],
    ['-first', /"-first"/],
    [undefined, /a value of type undefined/],
  ])('type %j is refused where it is recorded and where it is handled', async (type: any, shown) => {
    const { events } = await start({ handles: [] });
    const recording = events.record(type);
    await expect(recording).rejects.toThrow(TypeError);
    await expect(recording).rejects.toThrow(shown);
    expect(() => OnRedisEvent(type)).toThrow(shown);
    expect(await client.exists('nest:events:events')).toBe(0);
  });

  it('data that JSON would change, or that are too large, are refused', async () => {
    const { events } = await start({ handles: [] });
    const changed = events.record('paid', { at: [new Date()] });
    await expect(changed).rejects.toThrow(RedisEventDataError);
    await expect(changed).rejects.toThrow('The data of an event "paid" holds a value at .at[0] that');
    await expect(events.record('paid', 'x'.repeat(262_143))).rejects.toThrow(
      'take more than 262144 bytes: keep such data elsewhere, and record their key',
    );
    await events.record('paid', 'x'.repeat(262_142));
  });

  it('options of a decorator and of the module are refused with a sentence', async () => {
    expect(() => OnRedisEvent('paid', { group: 'a' } as never)).toThrow(
      '@OnRedisEvent() has no option "group": there is only `broadcast`',
    );
    expect(() => OnRedisEvent('paid', { broadcast: 'yes' } as never)).toThrow('takes true or false');
    const options = { host: 'localhost', namespace: 'a{b}', events: { retention: '1m', group: ' ' } };
    const wrong = refusal({ imports: [RedisEventsModule.forRoot(options as never)] });
    await wrong(
      /^RedisEventsModule: (?=.*`namespace`)(?=.*`events.retention` must be at least as long as 5m)(?=.*`events.group`)(?=.*`url`)/,
    );
    await refusal({ imports: [RedisEventsModule] })('write RedisEventsModule.forRoot() in the imports');
    const twice = [RedisEventsModule.forRoot({ url: server.url }), RedisEventsModule.forRoot({ url: server.url })];
    await refusal({ imports: twice })('RedisEventsModule: It is configured twice in this application.');
    await refusal({ imports: [RedisEventsModule.forRootAsync({ useFactory: () => undefined as never })] })(
      'RedisEventsModule: The factory of forRootAsync() has returned undefined',
    );
  });

  it('a handler that could never be called, or not be told apart, fails the start', async () => {
    class Static {}
    const descriptor = { value: () => undefined };
    expect(() => OnRedisEvent('paid')(Static, 'handle', descriptor as never)).toThrow('remove `static`');
    @Injectable({ scope: 2 })
    class PerRequest {
      @OnRedisEvent('paid')
      handle() {}
    }
    const imports = [RedisEventsModule.forRoot({ url: server.url })];
    await refusal({ imports, providers: [PerRequest] })('@OnRedisEvent cannot be used on PerRequest.handle');
    @Controller()
    class Twice {
      @OnRedisEvent('paid')
      handle() {}
    }
    await refusal({ imports, controllers: [Twice], providers: [Twice] })(
      'Twice.handle is a handler of the same event twice',
    );
  });
});

it('takes options from a class, and traces each call of a handler', async () => {
  class Settings implements RedisEventsOptionsFactory {
    createRedisEventsOptions() {
      return { url: server.url, events: { group: 'from a class' } };
    }
  }
  @Injectable()
  class Handler {
    @OnRedisEvent('paid')
    handle() {}
  }
  const calls: unknown[] = [];
  const subscriber = { start: (call: unknown) => void calls.push(call) };
  eventChannel.subscribe(subscriber as never);
  const app = await NestFactory.createApplicationContext(
    { module: class {}, imports: [RedisEventsModule.forRootAsync({ useClass: Settings })], providers: [Handler] },
    { logger: false, abortOnError: false },
  );
  const id = await app.get(RedisEvents).record('paid', { secret: 'value' });
  await eventually(() => expect(calls).toHaveLength(1));
  expect(calls).toEqual([
    expect.objectContaining({ handler: 'Handler.handle', type: 'paid', eventId: id, attempt: 1, broadcast: false }),
  ]);
  expect(JSON.stringify(calls)).not.toContain('value');
  expect(await client.hkeys('nest:events:events:wanted')).toEqual(['from a class']);
  await app.close();
  eventChannel.unsubscribe(subscriber as never);
});

it('an entry that another program wrote is skipped with a line of the log', async () => {
  const instance = await start();
  await client.xadd('nest:events:events', '*', 'hello', 'world');
  const id = await instance.events.record('paid');
  await eventually(() => expect(instance.ids).toEqual([id]));
  await eventually(() =>
    expect(EventsInstance.log.matching(/of a kind that this version does not know/)).toHaveLength(1),
  );
});

it('data that another serializer wrote fail the handler that reads them, and are kept', async () => {
  const written = await start({ handles: [], events: { serializer: { serialize: () => '{', deserialize: () => 1 } } });
  const instance = await start({ events: { events: { attempts: 1 } } });
  let read: unknown;
  instance.handled.push = (event: RedisEvent) => {
    read = event.data;
    return 1;
  };
  await written.events.record('paid', 'anything');
  const [letter] = await eventually(async () => {
    const found = await instance.groups.deadLetters();
    expect(found).toHaveLength(1);
    return found;
  });
  expect(read).toBeUndefined();
  expect(letter!.reason).toContain(
    'The data of an event "paid" cannot be read: another serializer may have written them',
  );
});
