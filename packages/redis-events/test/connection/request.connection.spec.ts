import { once } from 'node:events';
import { type AddressInfo, createConnection } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createServer } from 'node:tls';
import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import { SessionStoreError } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { selfSignedCertificate } from '@nest-session/test-infrastructure/browser';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { sendOwnCommands } from '../../src/connection/own-commands.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { SingleNode } from '../../src/connection/redis-nodes.js';

LeakGuard.install();

const RULES = { autoResendUnfulfilledCommands: false, enableOfflineQueue: false, maxRetriesPerRequest: null } as const;

let server: RedisServer;
let proxy: TcpProxy;
let direct: Redis;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  direct = new Redis(server.url);
});
beforeEach(async () => {
  client = new Redis(proxy.url, { ...RULES, lazyConnect: true, disconnectTimeout: 10, retryStrategy: () => 10 });
  client.on('error', () => undefined);
  await client.connect();
});
afterEach(() => {
  jest.restoreAllMocks();
  client.disconnect();
  proxy.blackHole(false);
});
afterAll(async () => {
  direct.disconnect();
  await proxy.stop();
  await server.stop();
});

const block = (milliseconds: number) => {
  for (const end = performance.now() + milliseconds; performance.now() < end;);
};
/** The timers that run and were started by `file`: the process has others, which come and go by themselves. */
const timersOf = (file: string) => {
  const { setTimeout: start, clearTimeout: stop } = globalThis;
  const running = new Set<unknown>();
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, delay?: number) => {
    const isOurs = new Error().stack!.includes(file);
    const timer = start(() => {
      running.delete(timer);
      run();
    }, delay);
    if (isOurs) running.add(timer);
    return timer;
  }) as typeof setTimeout);
  jest.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    running.delete(timer);
    stop(timer);
  });
  return running;
};
const increment = (connection: RequestConnection, key: string) => connection.run((redis) => redis.incr(key));

it('a command waits for a reconnection and is sent once', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  for (let round = 1; round <= 50; round++) {
    proxy.cut();
    await eventually(() => client.status !== 'ready', { interval: 1 });
    expect(await increment(connection, 'waits')).toBe(round);
  }
});

it('a command issued between the loss of a connection and its close event is sent', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  for (let round = 1; round <= 10; round++) {
    client.stream.destroy();
    expect(client.status).toBe('ready');
    expect(await increment(connection, 'between')).toBe(round);
  }
});

it('a command fails at once, without waiting for its timeout, when the connection is lost before the reply', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  for (let round = 1; round <= 20; round++) {
    proxy.hold('reply', 'lost');
    const lost = increment(connection, 'lost').catch((error: unknown) => error);
    await proxy.untilHeld('reply');
    proxy.cut();
    expect(await lost).toBeInstanceOf(SessionStoreError);
    proxy.release('reply');
  }
});

it('the first command waits for the connection', async () => {
  const lazy = new Redis(proxy.url, { ...RULES, lazyConnect: true, disconnectTimeout: 10 });
  try {
    expect(await increment(new RequestConnection(new SingleNode(lazy), { commandTimeout: 60_000 }), 'first')).toBe(1);
  } finally {
    lazy.disconnect();
  }
});

it('a command without a connection fails within the command timeout and is not sent later', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 100 });
  proxy.refuse();
  proxy.cut();
  await eventually(() => client.status !== 'ready', { interval: 1 });
  await expect(increment(connection, 'given-up')).rejects.toThrow('did not reply within 100 ms');
  await proxy.accept();
  expect(await increment(new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 }), 'given-up')).toBe(
    1,
  );
});

it('a reply that arrived while the event loop was blocked is used, although the timeout has passed', async () => {
  const connection = new RequestConnection(new SingleNode(direct), { commandTimeout: 100 });
  // A second attempt is needed only when Redis is slower than the block.
  const reply = await eventually(async () => {
    const late = increment(connection, 'stalled');
    // The command has left, and the next phases of the event loop are timers, then arrived data.
    await nextTurn();
    block(200);
    return late;
  });
  expect(reply).toBeGreaterThan(0);
});

it('a command gets its reply although a handler blocks the event loop before the command leaves', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 1000 });
  // Longer than a timer takes at least.
  proxy.delayReplies(30);
  const reply = increment(connection, 'blocked');
  block(1100);
  expect(await reply).toBe(1);
  proxy.delayReplies(0);
});

it('commands fail when their own timeout has passed, with one timer for all, which none outlives', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 500 });
  const timers = timersOf('WaitingCalls');
  await increment(connection, 'timed');
  expect(timers.size).toBe(0);
  proxy.blackHole();
  const lifetimes: number[] = [];
  const begin = async () => {
    const start = performance.now();
    const error: unknown = await increment(connection, 'timed').catch((e: unknown) => e);
    lifetimes.push(performance.now() - start);
    return error;
  };
  const calls = [begin(), begin()];
  await nextTurn();
  block(60);
  calls.push(begin());
  await nextTurn();
  expect(timers.size).toBe(1);
  for (const error of await Promise.all(calls)) expect(String(error)).toContain('did not reply within 500 ms');
  for (const lifetime of lifetimes) expect(lifetime).toBeGreaterThanOrEqual(500);
  expect(timers.size).toBe(0);
  proxy.blackHole(false);
});

it('commands of one turn of the event loop leave in one write', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  const writes: Buffer[] = [];
  const stop = proxy.onData('request', (data) => writes.push(data));
  for (let turn = 1; turn <= 3; turn++) {
    const replies = await Promise.all(Array.from({ length: 50 }, () => increment(connection, 'together')));
    expect(replies).toEqual(Array.from({ length: 50 }, (_, i) => 50 * (turn - 1) + i + 1));
    expect(writes).toHaveLength(turn);
  }
  stop();
});

it('many commands of one turn of the event loop do not wait for its end', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  const before = client.stream.bytesWritten;
  const replied = Array.from({ length: 400 }, () => increment(connection, 'many'));
  const early = client.stream.bytesWritten - before;
  await nextTurn();
  const all = client.stream.bytesWritten - before;
  expect(early).toBeGreaterThanOrEqual(8192);
  expect(all).toBeGreaterThan(early);
  expect(await Promise.all(replied)).toEqual(Array.from({ length: 400 }, (_, i) => i + 1));
});

it('commands leave at the end of the turn, also where two modules use the connection', async () => {
  const nodes = new SingleNode(client);
  const both = [1, 2].map(() => new RequestConnection(nodes, { commandTimeout: 60_000 }));
  for (const connection of both) {
    const before = client.stream.bytesWritten;
    const replied = increment(connection, 'at-once');
    await nextTurn();
    expect(client.stream.bytesWritten).toBeGreaterThan(before);
    await replied;
  }
});

it('commands that wait to leave when the connection is lost fail, and are never sent', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  const lost = Promise.allSettled([increment(connection, 'corked'), increment(connection, 'corked')]);
  client.stream.destroy();
  for (const outcome of await lost) {
    expect(outcome).toMatchObject({ reason: new SessionStoreError('The connection was lost before Redis replied') });
  }
  expect(await increment(connection, 'after-corked')).toBe(1);
  expect(await direct.get('corked')).toBeNull();
});

it.each([1, 2])(
  'a command that times out in the turn in which it is sent has left before it fails, modules: %i',
  async (modules) => {
    const nodes = new SingleNode(client);
    // Deadlines use the connections of sessions.
    const [connection] = Array.from(
      { length: modules },
      () => new RequestConnection(nodes, { commandTimeout: 2000 }),
    ) as [RequestConnection];
    proxy.hold('reply', 'info');
    proxy.cut();
    await eventually(() => client.status !== 'ready', { interval: 1 });
    let asked = 0;
    const begin = performance.now();
    const failed = connection
      .run((redis) => {
        asked++;
        return redis.incr('just-in-time');
      })
      .catch(() => client.stream.bytesWritten);
    await proxy.untilHeld('reply');
    await nextTurn();
    // The next phases of the event loop are timers, then the reply for which the connection waits.
    proxy.release('reply');
    block(begin + 2100 - performance.now());
    const written = await failed;
    await nextTurn();
    await nextTurn();
    expect(client.stream.bytesWritten).toBe(written);
    expect(asked).toBe(1);
  },
);

it('a call that has failed sends no further command', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 100 });
  proxy.hold('reply', 'first-step');
  const steps = connection.run(async (redis, proceed) => {
    await redis.incr('first-step');
    proceed();
    return redis.incr('second-step');
  });
  await expect(steps).rejects.toThrow('did not reply within 100 ms');
  proxy.release('reply');
  expect(
    await increment(new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 }), 'after-steps'),
  ).toBe(1);
  expect(await direct.mget('first-step', 'second-step')).toEqual(['1', null]);
});

it('commands of one turn of the event loop leave together over TLS as well', async () => {
  const tls = createServer(await selfSignedCertificate(), (socket) => {
    const upstream = createConnection(server.port, '127.0.0.1');
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(tls, 'listening');
  const wire = await TcpProxy.start({ port: (tls.address() as AddressInfo).port });
  const secure = new Redis(wire.port, { ...RULES, lazyConnect: true, tls: { rejectUnauthorized: false } });
  try {
    await secure.connect();
    const connection = new RequestConnection(new SingleNode(secure), { commandTimeout: 60_000 });
    const writes: Buffer[] = [];
    wire.onData('request', (data) => writes.push(data));
    const replies = await Promise.all(Array.from({ length: 50 }, () => increment(connection, 'secure')));
    expect(replies).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    expect(writes).toHaveLength(1);
  } finally {
    secure.disconnect();
    await wire.stop();
    tls.close();
  }
});

it('commands of a turn leave also when the client is closed in it', async () => {
  const leaving = new Redis(server.url, { ...RULES, lazyConnect: true });
  await leaving.connect();
  const connection = new RequestConnection(new SingleNode(leaving), { commandTimeout: 60_000 });
  const call = increment(connection, 'last-words');
  leaving.disconnect();
  await Promise.allSettled([call]);
  await eventually(async () => expect(await direct.get('last-words')).toBe('1'));
});

it('a command without a reply is never sent again', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 300 });
  const dropped = proxy.dropNextReply((burst) => burst.includes('without-reply'));
  await expect(increment(connection, 'without-reply')).rejects.toBeInstanceOf(SessionStoreError);
  await dropped;
  expect(await increment(new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 }), 'marker')).toBe(1);
  expect(await direct.get('without-reply')).toBe('1');
});

it('the error of a failed command does not contain its values', async () => {
  await direct.set('text', 'x');
  const connection = new RequestConnection(new SingleNode(sendOwnCommands(client)), { commandTimeout: 60_000 });
  const error: unknown = await connection
    .run((redis) => redis.hset('text', 'sessionAttr:card', 'very secret'))
    .catch((e: unknown) => e);
  expect(error).toBeInstanceOf(SessionStoreError);
  expect(inspect(error, { depth: 10 })).not.toContain('very secret');
  expect((error as Error).message).toContain('WRONGTYPE');
});

it('commands leave no listener on their connection, and each is sent once per outage', async () => {
  const connection = new RequestConnection(new SingleNode(client), { commandTimeout: 60_000 });
  const left = () => client.eventNames().map((name) => [name, client.listenerCount(name)]);
  const before = left();
  for (let round = 1; round <= 3; round++) {
    proxy.refuse();
    proxy.cut();
    await eventually(() => client.status !== 'ready', { interval: 1 });
    let asked = 0;
    const waiting = connection.run((redis) => {
      asked++;
      return redis.incr('outages');
    });
    let attempts = 0;
    const count = () => attempts++;
    client.on('reconnecting', count);
    await eventually(() => attempts >= 3);
    client.off('reconnecting', count);
    expect(asked).toBe(0);
    await proxy.accept();
    expect(await waiting).toBe(round);
    expect(left()).toEqual(before);
  }
});
