import { setImmediate as nextTurn } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  type KeyspaceGap,
  type KeyspaceHealth,
  type KeyspaceNotification,
  KeyspaceNotificationListener,
  type KeyspaceSubscription,
} from '@nest-session/redis-events';
import { KeptEntries, LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SingleNode } from '../../src/connection/redis-nodes.js';
import { ListenerSubscription } from '../../src/notifications/keyspace-notification.listener.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';
import { subscriberTo } from '../../../session-redis/test/support/key-event.fixture.js';
import { withAllRights } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

const logged: string[] = [];
const record = (line: string) => void logged.push(line);
Logger.overrideLogger({ log: record, warn: record, error: record });

let server: RedisServer;
let client: Redis;
let listener: KeyspaceNotificationListener;
let heard: KeyspaceNotification[];
const opened: { listener: KeyspaceNotificationListener; commands: Redis }[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(async () => {
  await client.flushall();
  await setFlags('');
  logged.length = 0;
  heard = [];
  listener = started(server.url);
});
afterEach(async () => {
  for (const { listener, commands } of opened.splice(0)) {
    await listener.stop();
    commands.disconnect();
  }
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const setFlags = (flags: string) => client.config('SET', 'notify-keyspace-events', flags);
const handler = (notification: KeyspaceNotification) => void heard.push(notification);
const keys = () => heard.map(({ key }) => key);

function created(url: string, pace = { heartbeat: 50, probe: 100 }): KeyspaceNotificationListener {
  const commands = new Redis(url);
  const listener = new KeyspaceNotificationListener(new SingleNode(subscriberTo(withAllRights(url))), commands, pace);
  opened.push({ listener, commands });
  return listener;
}

function started(url: string): KeyspaceNotificationListener {
  const listener = created(url);
  listener.start();
  return listener;
}

async function isListening(...subscriptions: KeyspaceSubscription[]): Promise<void> {
  for (const { health } of subscriptions) expect(['connecting', 'listening']).toContain(health.state);
  await eventually(() => subscriptions.every(({ health }) => health.state === 'listening'));
}

/** Publishes `count` notifications at once, as Redis would. */
function announce(count: number, channel = '__keyevent@0__:expired', message?: string) {
  const what = message === undefined ? `'k' .. i` : `'${message}'`;
  return client.eval(`for i = 1, ${count} do redis.call('PUBLISH', '${channel}', ${what}) end`, 0);
}

/** How often the flags were read: each proof begins with that. */
async function proofs(): Promise<number> {
  return Number(/cmdstat_config\|get:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]);
}

/** A gate at which calls wait. */
function gate() {
  const waiting: (() => void)[] = [];
  return { waiting, wait: () => new Promise<void>((resolve) => waiting.push(resolve)) };
}

describe('a notification', () => {
  it('names the event, the key and the channel', async () => {
    const events = listener.listen({ events: ['del', 'set'], handler });
    const patterns = listener.listen({ keys: 'cart:*', events: 'del', database: '*', handler });
    const names = listener.listen({ keys: ['cart:ann', 'cart:bob'], events: '*', handler });
    await isListening(events, patterns, names);
    await client.mset('cart:ann', 'x', 'other', 'x');
    await client.del('cart:ann', 'other');
    await eventually(() => heard.length === 7);
    const both = { key: 'cart:ann', database: 0 };
    expect(new Set(heard)).toEqual(
      new Set([
        { ...both, event: 'set', channel: '__keyspace@0__:cart:ann', pattern: undefined },
        { ...both, event: 'set', channel: '__keyevent@0__:set', pattern: undefined },
        { key: 'other', database: 0, event: 'set', channel: '__keyevent@0__:set', pattern: undefined },
        { ...both, event: 'del', channel: '__keyspace@0__:cart:ann', pattern: undefined },
        { ...both, event: 'del', channel: '__keyspace@0__:cart:ann', pattern: '__keyspace@*__:cart:*' },
        { ...both, event: 'del', channel: '__keyevent@0__:del', pattern: undefined },
        { key: 'other', database: 0, event: 'del', channel: '__keyevent@0__:del', pattern: undefined },
      ]),
    );
  });

  it('comes from the database of the listener or the one in the options', async () => {
    const own = started(`${server.url}/3`);
    await isListening(own.listen({ events: 'set', handler }), own.listen({ events: 'del', database: 5, handler }));
    await client
      .multi()
      .select(5)
      .set('five', 'x')
      .del('five')
      .select(3)
      .set('three', 'x')
      .del('three')
      .select(0)
      .exec();
    await eventually(() => heard.length === 2);
    expect(heard.map(({ event, key, database }) => [event, key, database])).toEqual([
      ['del', 'five', 5],
      ['set', 'three', 3],
    ]);
  });
});

describe('the handler', () => {
  it('is called for one notification after the other in order, or concurrently up to `concurrency`', async () => {
    const doors = { one: gate(), three: gate() };
    const order: string[] = [];
    await isListening(
      listener.listen({
        events: 'expired',
        handler: ({ key }) => {
          order.push(key);
          return doors.one.wait();
        },
      }),
      listener.listen({ events: 'expired', concurrency: 3, handler: () => doors.three.wait() }),
    );
    await announce(10);
    await eventually(() => doors.three.waiting.length === 3);
    for (let finished = 1; finished <= 10; finished++) {
      await eventually(() => doors.one.waiting.length === finished);
      doors.one.waiting.at(-1)!();
    }
    expect(order).toEqual(Array.from({ length: 10 }, (_, i) => `k${i + 1}`));
    expect(doors.three.waiting).toHaveLength(3);
    doors.three.waiting.shift()!();
    await eventually(() => doors.three.waiting.length === 3);
    for (let open = 0; open < 9; open++) {
      await eventually(() => doors.three.waiting.length > 0);
      doors.three.waiting.shift()!();
    }
  });

  it('reports failed, surplus and unhandled notifications to `onError`', async () => {
    const failed: [string, string][] = [];
    const door = gate();
    const subscription = listener.listen({
      events: 'expired',
      handler: async ({ key }) => {
        if (key === 'k1') await door.wait();
        if (key === 'k2') throw new Error('not today');
      },
      onError: (error, { key }) => failed.push([key, (error as Error).message]),
    });
    await isListening(subscription);
    await announce(10_003);
    await eventually(() => failed.length === 2);
    expect(failed).toEqual([
      ['k10002', '10000 notifications are already waiting: the handler is too slow'],
      ['k10003', '10000 notifications are already waiting: the handler is too slow'],
    ]);
    door.waiting[0]!();
    await eventually(() => failed.length === 3);
    expect(failed[2]).toEqual(['k2', 'not today']);

    await eventually(async () => {
      await announce(2);
      return door.waiting.length === 2;
    });
    const stopped = listener.stop();
    expect(await Promise.race([stopped, Promise.resolve('waits for the handler')])).toBe('waits for the handler');
    expect(failed.slice(3)).toContainEqual(['k2', 'The listener stopped before the handler was called']);
    door.waiting[1]!();
    await stopped;
  });

  it('logs one line each time its queue is full', async () => {
    let waiting = gate();
    let handled = 0;
    await isListening(
      listener.listen({
        events: 'expired',
        handler: async () => {
          if (handled++ === 0) await waiting.wait();
        },
      }),
    );
    const lines = () => logged.filter((line) => line.includes('10000 notifications are already waiting'));
    for (let round = 1; round <= 2; round++) {
      [handled, waiting] = [0, gate()];
      await announce(10_003);
      await eventually(() => expect(lines()).toHaveLength(round));
      waiting.waiting[0]!();
      await eventually(() => handled === 10_001);
    }
  });

  it('logs one line without the key when there is no `onError` or it fails', async () => {
    const events = ['expired', 'evicted'];
    const fail = (message: string) => () => {
      throw new Error(message);
    };
    await isListening(
      listener.listen({ events: 'expired', handler: fail('no') }),
      listener.listen({ events: 'evicted', handler: fail('no'), onError: fail('neither') }),
    );
    for (const event of events) await announce(1, `__keyevent@0__:${event}`);
    await eventually(() => logged.length === 4);
    expect(logged.slice(2)).toEqual([
      'A notification of "expired" was not handled: Error: "no"',
      'onError of "evicted" failed: Error: "neither"',
    ]);
  });
});

it('a listener logs one line when its handler is too slow', async () => {
  const door = gate();
  const subscription = listener.listen({ events: 'expired', handler: () => door.wait() });
  await isListening(subscription);
  await announce(10_100);
  await eventually(() => logged.length === 2);
  expect(logged[1]).toBe(
    'A notification of "expired" was not handled: Error: "10000 notifications are already waiting: the handler is too slow"',
  );
  const stopped = listener.stop();
  door.waiting[0]!();
  await stopped;
  expect(logged.slice(2)).toEqual([
    'A notification of "expired" was not handled: Error: "The listener stopped before the handler was called"',
  ]);
});

it('a listener works without RESP3, where a subscribed connection takes no other commands', async () => {
  const subscriber = subscriberTo(withAllRights(server.url)).duplicate({ protocol: 2 });
  const commands = new Redis(server.url);
  const listener = new KeyspaceNotificationListener(new SingleNode(subscriber), commands, {
    heartbeat: 50,
    probe: 100,
  });
  opened.push({ listener, commands });
  listener.start();
  let gaps = 0;
  const options = { events: 'expired', handler, onGap: () => gaps++ } as const;
  const subscription = listener.listen({ ...options, keys: 'cart:*', canary: 'cart:canary:' });
  for (let round = 1; round <= 3; round++) {
    await eventually(() => gaps === round);
    await isListening(subscription);
    await client.set('cart:x', '', 'PX', 1);
    await eventually(async () => (await client.exists('cart:x')) === 0);
    await eventually(() => heard.length === round);
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  }
});

describe('a subscription', () => {
  it('can be made before or after the start, and closed on its own', async () => {
    const listener = created(server.url);
    const first = listener.listen({ keys: 'a:*', events: 'set', handler });
    expect(first.health.state).toBe('stopped');
    listener.start();
    await isListening(first);
    const second = listener.listen({ keys: ['a:*', 'b'], events: 'set', handler });
    await isListening(second);
    await client.set('a:1', 'x');
    await client.set('b', 'x');
    await eventually(() => heard.length === 3);
    expect(keys()).toEqual(['a:1', 'a:1', 'b']);
    await second.close();
    expect(second.health.state).toBe('stopped');
    await eventually(async () => expect(await client.pubsub('CHANNELS')).toEqual([]));
    await client.set('b', 'y');
    await client.set('a:2', 'x');
    await eventually(() => heard.length === 4);
    expect(keys().at(-1)).toBe('a:2');
    await first.close();
    await eventually(async () => expect(await client.pubsub('NUMPAT')).toBe(0));
  });

  it('hears its channels and patterns until it is closed, although another one to the same is closed before', async () => {
    const open = () => listener.listen({ keys: ['a', 'b:*'], events: 'set', handler });
    const [first, second, third] = [open(), open(), open()];
    await isListening(first, second, third);
    const hears = async (subscriptions: number) => {
      // On the same connection: what was sent before has been executed.
      const latest = listener.listen({ keys: `c${subscriptions}`, events: 'set', handler });
      await isListening(latest);
      await latest.close();
      heard.length = 0;
      await client.mset('a', 'x', 'b:1', 'x');
      // Redis sends it after the notifications.
      await client.publish('__keyspace@0__:b:2', 'set');
      await eventually(() => expect(keys().filter((key) => key === 'b:2')).toHaveLength(subscriptions));
      for (const key of ['a', 'b:1']) expect(keys().filter((each) => each === key)).toHaveLength(subscriptions);
    };
    await hears(3);
    await second.close();
    await hears(2);
    await first.close();
    await hears(1);
    await third.close();
    await eventually(async () =>
      expect([await client.pubsub('CHANNELS'), await client.pubsub('NUMPAT')]).toEqual([[], 0]),
    );
  });

  it('that is closed while there is no connection is not renewed with the next one', async () => {
    const proxy = await TcpProxy.start({ port: server.port });
    const listener = started(proxy.url);
    const left = listener.listen({ keys: ['a', 'a:*'], events: 'set', handler });
    const kept = listener.listen({ keys: ['b', 'b:*'], events: 'set', handler });
    await isListening(left, kept);
    proxy.refuse();
    proxy.cut();
    await eventually(() => left.health.state === 'connecting');
    await left.close();
    await proxy.accept();
    await isListening(kept);
    expect([await client.pubsub('CHANNELS'), await client.pubsub('NUMPAT')]).toEqual([['__keyspace@0__:b'], 1]);
    expect(left.health.state).toBe('stopped');
    await listener.stop();
    await proxy.stop();
  });

  it.each(['at once', 'after a heartbeat'])(
    'leaves nothing when it is closed while it subscribes, %s',
    async (when) => {
      const check = jest.spyOn(ListenerSubscription.prototype, 'check');
      // Makes the connection.
      await isListening(listener.listen({ keys: 'other', events: 'set', handler }));
      server.freeze();
      const left = listener.listen({ keys: ['cart', 'carts:*'], events: 'set', handler });
      // Now it has asked for the first of them.
      await nextTurn();
      if (when !== 'at once') await eventually(() => (check.mock.contexts as unknown[]).includes(left));
      await left.close();
      server.thaw();
      check.mockRestore();
      await isListening(listener.listen({ keys: 'last', events: 'set', handler }));
      expect(await client.pubsub('NUMPAT')).toBe(0);
      expect(await client.pubsub('CHANNELS')).not.toContain('__keyspace@0__:cart');
    },
  );

  it('leaves nothing when it is closed, however often', async () => {
    const kept = new KeptEntries();
    try {
      const open = async () => {
        const subscription = listener.listen({ keys: 'a:*', events: 'set', handler });
        await isListening(subscription);
        await subscription.close();
      };
      await open();
      const before = kept.counts();
      for (let round = 1; round <= 3; round++) await open();
      await eventually(() => expect(kept.grownSince(before)).toEqual([]));
    } finally {
      kept.stop();
    }
  });

  it('is renewed with each connection, not at the next heartbeat', async () => {
    const listener = created(server.url, { heartbeat: 600_000, probe: 600_000 });
    listener.start();
    const subscription = listener.listen({ keys: 'a', events: 'set', handler });
    for (let round = 1; round <= 5; round++) {
      await isListening(subscription);
      await client.set('a', round);
      await eventually(() => heard.length === round);
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await eventually(() => subscription.health.state === 'connecting', { interval: 1 });
    }
  });

  it('needs exactly these rights beside those of any connection', async () => {
    const any = ['+hello', '+auth', '+client', '+info', '+config', '+set', '+exists', '~cart:*'];
    const these = ['+subscribe', '+psubscribe', '+unsubscribe', '+punsubscribe', '+ping', '&__keyspace@0__:cart:*'];
    await client.acl('SETUSER', 'frugal', 'reset', 'on', '>secret', ...any, ...these);
    const listener = started(`redis://frugal:secret@127.0.0.1:${server.port}`);
    const subscription = listener.listen({ keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler });
    await isListening(subscription);
    await subscription.close();
    await eventually(async () => expect(await client.pubsub('NUMPAT')).toBe(0));
  });

  it('is rejected with all problems of its options', () => {
    const wrong = { events: [], keys: [''], concurency: 2, database: -1, canary: '', onGap: 1 } as never;
    expect(() => listener.listen(wrong)).toThrow(
      expect.objectContaining({
        name: 'InvalidSessionOptionsError',
        problems: [
          'Option `events` must name at least one event.',
          'Option `keys` must be a key, a pattern, or a list of keys and patterns.',
          'Option `database` must be the number of a database, or "*".',
          'Option `canary` must be a prefix of keys, or a list of prefixes.',
          'Option `handler` is missing.',
          'Option `onGap` must be a function.',
          'Unknown option `concurency`: known are events, keys, database, canary, concurrency, handler, onError, onGap, onHealth.',
        ],
      }),
    );
    expect(() => listener.listen({ events: 'set', canary: 'x', database: 7, handler })).toThrow(
      /needs the event "expired".*needs the database of the listener/,
    );
    // It would be `listening`, and hear nothing.
    expect(() => listener.listen({ events: 'set', keys: [], handler })).toThrow(
      'Option `keys` must name at least one key: leave it out for all keys.',
    );
    expect(listener.health.state).toBe('stopped');
  });

  it.each([
    ['h*', 'and takes no patterns: name each event, or write "*" for all of them'],
    ['[d]el', 'and takes no patterns: name each event, or write "*" for all of them'],
    ['Expired', 'which is no event of Redis: write "expired"'],
    [' set', 'which is no event of Redis: write "set"'],
    ['unlink', 'which is no event of Redis: write "del"'],
    ['SETEX', 'which is no event of Redis: write "set"'],
    ['getex', 'which is no event of Redis: write "expire"'],
    ['__keyevent@0__:expired', 'which is no event of Redis: write "expired"'],
  ])('of the event %j, which nobody would hear, is rejected with what to write', (event, problem) => {
    for (const keys of [undefined, 'cart:*']) {
      const options = { events: ['del', event], handler, ...(keys && { keys }) };
      expect(() => listener.listen(options)).toThrow(
        expect.objectContaining({ problems: [`Option \`events\` has ${JSON.stringify(event)}, ${problem}.`] }),
      );
    }
    expect(listener.health.state).toBe('stopped');
  });

  it('may be of an event of a module of Redis, and a log line names each that may be a slip', async () => {
    const subscription = listener.listen({ events: ['json.set', 'constructor', 'set'], handler });
    expect(logged).toEqual([
      expect.stringContaining('no key event "json.set"'),
      expect.stringContaining('no key event "constructor"'),
    ]);
    await isListening(subscription);
    await subscription.close();
  });

  it('that Redis refuses does not affect others', async () => {
    await client.acl('SETUSER', 'half', 'on', '>secret', '~*', '+@all', '&__keyevent@0__:set');
    const half = started(`redis://half:secret@127.0.0.1:${server.port}`);
    const refused = half.listen({ events: 'del', handler });
    const allowed = half.listen({ events: 'set', handler });
    await eventually(() => refused.health.state === 'refused' && allowed.health.state === 'listening');
    expect(refused.health.reason).toContain('NOPERM');
    expect(half.health).toBe(refused.health);
    await client.set('a', 'x');
    await eventually(() => heard.length === 1);
  });
});

describe('the health of a subscription', () => {
  it('follows the connection, and each change is reported once or logged in one line', async () => {
    const states: string[] = [];
    const told = listener.listen({ events: 'set', handler, onHealth: ({ state }) => states.push(state) });
    const silently = listener.listen({ events: 'del', handler });
    await isListening(told, silently);
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => states.length === 4);
    await isListening(told, silently);
    await listener.stop();
    expect(states).toEqual(['connecting', 'listening', 'connecting', 'listening', 'stopped']);
    expect(logged).toEqual([
      'Listening to __keyevent@0__:del',
      'Not listening to __keyevent@0__:del (connecting): there is no connection to Redis',
      'Listening to __keyevent@0__:del',
    ]);
  });

  it('is unproven without the right to CONFIG, unless a canary proves otherwise', async () => {
    await client.acl('SETUSER', 'modest', 'on', '>secret', '~*', '&*', '+@all', '-config');
    await setFlags('Kx');
    const modest = started(`redis://modest:secret@127.0.0.1:${server.port}`);
    const without = modest.listen({ keys: 'cart:*', events: 'expired', handler });
    const withCanary = modest.listen({ keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler });
    await eventually(() => without.health.state === 'unproven' && withCanary.health.state === 'listening');
    expect(without.health.reason).toContain('set notify-keyspace-events to "Kx" on the server');
    expect(modest.health).toBe(without.health);
    await setFlags('');
    await eventually(() => withCanary.health.state === 'silent');
    await setFlags('Kx');
    await eventually(() => withCanary.health.state === 'listening');
  });

  it('is silent when its canary is not among its keys', async () => {
    const subscription = listener.listen({ keys: 'a:*', events: 'expired', canary: 'b:canary', handler });
    await eventually(() => subscription.health.state === 'silent');
    expect(subscription.health.reason).toContain('no notification arrives');
  });
});

describe('at rest, a listener', () => {
  it('sends one ping per heartbeat, and a proof no more often than configured', async () => {
    const patient = created(server.url, { heartbeat: 50, probe: 3_600_000 });
    patient.start();
    await isListening(patient.listen({ keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler }));
    const begin = performance.now();
    await client.config('RESETSTAT');
    const pings = async () => (await commandStats(client)).get('ping')?.calls ?? 0;
    await eventually(async () => (await pings()) >= 6);
    expect(performance.now() - begin).toBeGreaterThan(5 * 50 * 0.9);
    expect([...(await commandStats(client)).keys()].toSorted()).toEqual(['config|resetstat', 'info', 'ping']);
  });

  it('writes no flags that are already set', async () => {
    await isListening(listener.listen({ keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler }));
    await client.config('RESETSTAT');
    await eventually(async () => (await proofs()) >= 3);
    expect((await commandStats(client)).has('config|set')).toBe(false);
  });
});

describe('a gap', () => {
  it('is reported when others have switched notifications on', async () => {
    await client.acl('SETUSER', 'bound', 'on', '>secret', '~*', '&*', '+@all', '-config');
    const bound = started(`redis://bound:secret@127.0.0.1:${server.port}`);
    let gaps = 0;
    const onGap = () => void gaps++;
    const subscription = bound.listen({ keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler, onGap });
    await eventually(() => subscription.health.state === 'silent' && gaps === 1);
    await setFlags('Kx');
    await eventually(() => subscription.health.state === 'listening');
    await eventually(() => gaps === 2);
  });

  it('is reported at the start, after each lost connection and after notifications were off, one call at a time', async () => {
    const gaps: (number | undefined)[] = [];
    let calls = 0;
    const door = gate();
    const begin = Date.now();
    const subscription = listener.listen({
      keys: 'cart:*',
      events: 'expired',
      handler,
      onGap: async ({ since }) => {
        expect(++calls).toBe(1);
        gaps.push(since);
        await door.wait();
        calls--;
      },
    });
    await isListening(subscription);
    await eventually(() => door.waiting.length === 1);
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => subscription.health.state === 'connecting');
    await isListening(subscription);
    door.waiting[0]!();
    await eventually(() => door.waiting.length === 2);
    door.waiting[1]!();
    await setFlags('');
    await eventually(() => door.waiting.length === 3);
    door.waiting[2]!();
    expect(gaps[0]).toBeUndefined();
    for (const since of gaps.slice(1)) expect(since).toBeGreaterThanOrEqual(begin);
    await listener.stop();
    expect(gaps).toHaveLength(3);
  });

  it.each([
    ['the earlier one', [5, 3, 4], 3],
    ['that of which nothing was ever heard', [5, undefined], undefined],
    ['that of which nothing was ever heard, which came first', [undefined, 5], undefined],
  ])('of several nodes is told once, since %s', async (_, times, since) => {
    const gaps: (number | undefined)[] = [];
    const options = { events: 'set', handler, onGap: (gap: KeyspaceGap) => void gaps.push(gap.since) };
    const subscription = new ListenerSubscription(options, 0, 100, () => []);
    subscription.start();
    for (const each of times) subscription.missed(each);
    await eventually(() => expect(gaps).toHaveLength(1));
    await subscription.stop();
    expect(gaps).toStrictEqual([since]);
  });

  it('is logged when its handler fails', async () => {
    const subscription = listener.listen({ events: 'set', handler, onGap: () => Promise.reject(new Error('no time')) });
    await isListening(subscription);
    await eventually(() => logged.length === 2);
    expect(logged[1]).toBe('onGap of __keyevent@0__:set failed, so notifications may be missing: Error: "no time"');
  });
});

it('a listener leaves a server that replies but no longer holds the keys', async () => {
  const next = await RedisServer.start({ args: ['--notify-keyspace-events', 'Kx'] });
  const subscriber = subscriberTo(withAllRights(server.url));
  const commands = new Redis(server.url, { disconnectTimeout: 10 });
  const listener = new KeyspaceNotificationListener(new SingleNode(subscriber), commands, {
    heartbeat: 50,
    probe: 100,
  });
  opened.push({ listener, commands });
  listener.start();
  const subscription = listener.listen({ keys: 'a:*', events: 'expired', canary: 'a:canary:', handler });
  await isListening(subscription);
  // As after a failover: the address leads to another server, but the connection stays.
  subscriber.options.port = commands.options.port = next.port;
  commands.disconnect(true);
  const there = new Redis(next.url);
  await eventually(async () => {
    await there.set('a:x', '', 'PX', 1);
    await eventually(async () => (await there.exists('a:x')) === 0);
    return keys().includes('a:x');
  });
  // Notifications arrive before the proof.
  await eventually(() => subscription.health.state === 'listening');
  there.disconnect();
  await listener.stop();
  commands.disconnect();
  await next.stop();
});

it('a listener does not take the canary of another instance for its own', async () => {
  const states: string[] = [];
  const onHealth = ({ state }: KeyspaceHealth) => states.push(state);
  const subscription = listener.listen({ keys: 'a:*', events: 'expired', canary: 'a:canary:', handler, onHealth });
  await isListening(subscription);
  const before = await proofs();
  await eventually(
    async () => {
      await announce(500, '__keyspace@0__:a:canary:another', 'expired');
      return (await proofs()) > before + 10;
    },
    { interval: 1 },
  );
  expect(states).toEqual(['connecting', 'listening']);
});

it('a listener is silent while it hears canaries of other instances, and none of its own', async () => {
  await client.acl('SETUSER', 'modest', 'on', '>secret', '~*', '&*', '+@all', '-config');
  const modest = started(`redis://modest:secret@127.0.0.1:${server.port}`);
  const subscription = modest.listen({ keys: 'a:*', events: 'expired', canary: 'a:canary:', handler });
  await eventually(
    async () => {
      await announce(500, '__keyspace@0__:a:canary:another', 'expired');
      return subscription.health.state === 'silent';
    },
    { interval: 1 },
  );
});

it('what a listener has learned on a lost connection says nothing about the next one', async () => {
  const proxies = [await TcpProxy.start({ port: server.port }), await TcpProxy.start({ port: server.port })];
  const [toSubscriber, toCommands] = proxies as [TcpProxy, TcpProxy];
  const commands = new Redis(toCommands.url);
  const listener = new KeyspaceNotificationListener(
    new SingleNode(subscriberTo(withAllRights(toSubscriber.url))),
    commands,
  );
  opened.push({ listener, commands });
  await commands.ping();
  // The held reply is then the last one of the check.
  await setFlags('E$');
  toCommands.hold('reply');
  listener.start();
  let gaps = 0;
  const subscription = listener.listen({ events: 'set', handler, onGap: () => void gaps++ });
  await toCommands.untilHeld('reply');
  toSubscriber.refuse();
  toSubscriber.cut();
  await eventually(() => subscription.health.reason === 'there is no connection to Redis');
  toCommands.release('reply');
  await commands.ping();
  await commands.ping();
  expect([subscription.health.state, gaps]).toEqual(['connecting', 0]);
  await toSubscriber.accept();
  await isListening(subscription);
  await eventually(() => expect(gaps).toBe(1));
  await client.set('a', 'x');
  await eventually(() => heard.length === 1);
  await listener.stop();
  commands.disconnect();
  for (const proxy of proxies) await proxy.stop();
});

it("a listener reports no canary, its own or another instance's, and leaves none behind", async () => {
  const other = started(server.url);
  const options = { keys: 'cart:*', events: 'expired', canary: 'cart:canary:', handler } as const;
  await isListening(listener.listen(options), other.listen(options));
  await client.set('cart:canary', 'x', 'PX', 1);
  await eventually(async () => (await client.exists('cart:canary')) === 0);
  await eventually(() => heard.length === 2);
  expect(keys()).toEqual(['cart:canary', 'cart:canary']);
  await eventually(async () => expect(await client.keys('*')).toEqual([]));
});

it('a canary lives for a millisecond, so that a proof takes no longer', async () => {
  const proxy = await TcpProxy.start({ port: server.port });
  const commands = new Redis(proxy.url);
  const proving = new KeyspaceNotificationListener(new SingleNode(subscriberTo(withAllRights(server.url))), commands);
  proxy.hold('request', 'exists');
  proving.start();
  const subscription = proving.listen({ keys: 'a:*', events: 'expired', canary: 'a:canary:', handler });
  await proxy.untilHeld('request');
  for (const key of await client.keys('a:canary:*')) expect(await client.pttl(key)).toBeLessThanOrEqual(1);
  proxy.release('request');
  await isListening(subscription);
  await proving.stop();
  commands.disconnect();
  await proxy.stop();
});
