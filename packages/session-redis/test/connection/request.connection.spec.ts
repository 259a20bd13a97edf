import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { SessionStoreError } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RequestConnection } from '../../src/connection/request.connection.js';

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
afterEach(() => client.disconnect());
afterAll(async () => {
  direct.disconnect();
  await proxy.stop();
  await server.stop();
});

const increment = (connection: RequestConnection, key: string) => connection.run((redis) => redis.incr(key));

it('a command waits for a reconnection and is sent once', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 60_000 });
  for (let round = 1; round <= 50; round++) {
    proxy.cut();
    await eventually(() => client.status !== 'ready', { interval: 1 });
    expect(await increment(connection, 'waits')).toBe(round);
  }
});

it('a command issued between the loss of a connection and its close event is sent', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 60_000 });
  for (let round = 1; round <= 10; round++) {
    client.stream.destroy();
    expect(client.status).toBe('ready');
    expect(await increment(connection, 'between')).toBe(round);
  }
});

it('a command fails at once, without waiting for its timeout, when the connection is lost before the reply', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 60_000 });
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
    expect(await increment(new RequestConnection(lazy, { commandTimeout: 60_000 }), 'first')).toBe(1);
  } finally {
    lazy.disconnect();
  }
});

it('a command without a connection fails within the command timeout and is not sent later', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 100 });
  proxy.refuse();
  proxy.cut();
  await eventually(() => client.status !== 'ready', { interval: 1 });
  await expect(increment(connection, 'given-up')).rejects.toThrow('did not reply within 100 ms');
  await proxy.accept();
  expect(await increment(new RequestConnection(client, { commandTimeout: 60_000 }), 'given-up')).toBe(1);
});

it('a reply that arrived while the event loop was blocked is used, although the timeout has passed', async () => {
  const connection = new RequestConnection(direct, { commandTimeout: 100 });
  // A second attempt is needed only when Redis is slower than the block.
  const reply = await eventually(async () => {
    // The next phases of the event loop are timers, then arrived data.
    await nextTurn();
    const late = increment(connection, 'stalled');
    for (const end = performance.now() + 200; performance.now() < end;);
    return late;
  });
  expect(reply).toBeGreaterThan(0);
});

it('a command without a reply is never sent again', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 300 });
  const dropped = proxy.dropNextReply((burst) => burst.includes('without-reply'));
  await expect(increment(connection, 'without-reply')).rejects.toBeInstanceOf(SessionStoreError);
  await dropped;
  expect(await increment(new RequestConnection(client, { commandTimeout: 60_000 }), 'marker')).toBe(1);
  expect(await direct.get('without-reply')).toBe('1');
});

it('the error of a failed command does not contain its values', async () => {
  await direct.set('text', 'x');
  const connection = new RequestConnection(client, { commandTimeout: 60_000 });
  const error: unknown = await connection
    .run((redis) => redis.hset('text', 'sessionAttr:card', 'very secret'))
    .catch((e: unknown) => e);
  expect(error).toBeInstanceOf(SessionStoreError);
  expect(inspect(error, { depth: 10 })).not.toContain('very secret');
  expect((error as Error).message).toContain('WRONGTYPE');
});

it('commands leave no listener on their connection, and each is sent once per outage', async () => {
  const connection = new RequestConnection(client, { commandTimeout: 60_000 });
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
