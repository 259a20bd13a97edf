import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LeakGuard, Sentinel, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis, type RedisOptions } from 'ioredis';
import { closeConnection } from '../../src/connection/close-connection.js';
import { closeConnections, createConnections, type RedisConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { ALL_RIGHTS, withAllRights } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

const logged: string[] = [];
const record = (line: string) => void logged.push(line);
Logger.overrideLogger({ log: record, warn: record, error: record });

let server: RedisServer;
let proxy: TcpProxy;
let direct: Redis;
let connections: RedisConnections;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
  direct = new Redis(server.url);
});
beforeEach(() => {
  logged.length = 0;
  connections = createConnections(resolveRedisSessionOptions({ url: withAllRights(proxy.url), commandTimeout: '1m' }));
});
afterEach(async () => {
  void closeConnections(connections);
  await proxy.accept();
});
afterAll(async () => {
  direct.disconnect();
  await proxy.stop();
  await server.stop();
});

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: unknown) => String(error),
  );

/** Resolves when a connection has failed to connect `count` times, to the pauses in ms after these failures. */
async function attempts(client: Redis, count: number): Promise<number[]> {
  const pauses: number[] = [];
  const onReconnecting = (pause: number) => pauses.push(pause);
  client.on('reconnecting', onReconnecting);
  await eventually(() => pauses.length >= count);
  client.off('reconnecting', onReconnecting);
  return pauses.slice(0, count);
}

it('background commands survive an outage that ioredis alone gives up on, with two log lines', async () => {
  const [background, reader] = [connections.background, connections.reader!];
  await Promise.all([background.set('a', '1'), reader.ping()]);
  proxy.refuse();
  proxy.cut();
  const waiting = background.incr('a');
  const pauses = await Promise.all([attempts(background, 6), attempts(reader, 6)]);
  expect(pauses).toEqual(Array(2).fill([100, 200, 400, 800, 1000, 1000]));
  await proxy.accept();
  expect(await waiting).toBe(2);
  await eventually(() => logged.length === 2);
  expect(logged).toEqual([
    expect.stringMatching(/^Redis cannot be reached, retrying: .*ECONNREFUSED/),
    'Redis can be reached again',
  ]);
});

it('a server with as many clients as it takes is logged with what to do', async () => {
  const full = await RedisServer.start({ args: ['--maxclients', '1'] });
  const first = new Redis(full.url);
  await first.ping();
  // Whoever sends something before the server has closed the connection may never read what it says.
  const refusal = await text(connect(full.port, '127.0.0.1'));
  const refusing = createServer((socket) =>
    socket
      .on('error', () => undefined)
      .resume()
      .end(refusal),
  );
  await once(refusing.listen(0, '127.0.0.1'), 'listening');
  const { port } = refusing.address() as AddressInfo;
  const own = createConnections(resolveRedisSessionOptions({ url: `redis://127.0.0.1:${port}` }));
  try {
    own.background.connect().catch(() => undefined);
    await eventually(() => expect(logged.join()).toContain('as many clients as its `maxclients` allows'));
  } finally {
    await closeConnections(own);
    refusing.close();
    first.disconnect();
    await full.stop();
  }
});

it('a Cluster whose nodes do not say their addresses is logged once, with what to do', async () => {
  const cluster = await RedisCluster.start({ args: ['--cluster-preferred-endpoint-type', 'unknown-endpoint'] });
  const own = createConnections(resolveRedisSessionOptions({ cluster: { nodes: cluster.addresses } }));
  let looks = 0;
  own.background.on('refresh', () => looks++);
  try {
    own.request.connect().catch(() => undefined);
    await eventually(() => expect(looks).toBeGreaterThan(3), { timeout: 30_000 });
    expect(logged).toEqual([
      expect.stringMatching(/^Redis cannot be reached, retrying: .*addresses of its nodes.* to ip, or to hostname/),
    ]);
  } finally {
    await closeConnections(own);
    await cluster.stop();
  }
});

it('a connection survives several errors of its stream, such as those of a handshake that both sides refuse', async () => {
  const own = createConnections(resolveRedisSessionOptions({ url: withAllRights(proxy.url) }));
  const clients = [own.background, own.request.of(undefined)!];
  for (const client of clients) {
    await client.connect();
    const { stream } = client;
    for (let i = 0; i < 3; i++) stream.emit('error', new Error('refused'));
    stream.destroy();
    await eventually(async () => expect(await client.ping()).toBe('PONG'));
  }
  await closeConnections(own);
});

it('the connection of requests pauses between two attempts for a quarter of the command timeout at most', async () => {
  const own = createConnections(resolveRedisSessionOptions({ url: withAllRights(proxy.url), commandTimeout: '600ms' }));
  const request = own.request.of(undefined)!;
  await request.connect();
  proxy.refuse();
  proxy.cut();
  expect(await attempts(request, 3)).toEqual([100, 150, 150]);
  void closeConnections(own);
});

it.each(['after', 'before'])(
  'a pause of the process %s a command leaves costs no connection, although that is silent for too long',
  async (when) => {
    const options = resolveRedisSessionOptions({ url: withAllRights(server.url), commandTimeout: '100ms' });
    const own = createConnections(options);
    const requests = new RequestConnection(own.request, options);
    await own.request.connect();
    const listeners = own.request.of(undefined)!.stream.listenerCount('close');
    // A second attempt is needed only when Redis is slower than the pause.
    const reply = await eventually(async () => {
      const late = requests.run((client) => client.echo('here'));
      late.catch(() => undefined);
      // The command leaves at the end of the turn.
      if (when === 'after') await nextTurn();
      for (const end = performance.now() + 400; performance.now() < end;);
      return late;
    });
    expect(reply).toBe('here');
    expect(own.request.of(undefined)!.stream.listenerCount('close')).toBe(listeners);
    // A connection that stays silent is still replaced.
    const { stream } = own.request.of(undefined)!;
    await direct.client('PAUSE', 1000);
    await expect(requests.run((client) => client.echo('late'))).rejects.toThrow('did not reply within 100 ms');
    await eventually(() => stream.destroyed);
    await direct.client('UNPAUSE');
    expect(logged).toContainEqual(expect.stringContaining('Socket timeout'));
    await closeConnections(own);
  },
);

it('background commands of one turn of the event loop leave in one write', async () => {
  const { background } = connections;
  await background.ping();
  let writes = 0;
  const stop = proxy.onData('request', () => writes++);
  const replies = await Promise.all(Array.from({ length: 50 }, () => background.incr('together')));
  stop();
  expect(replies).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  expect(writes).toBe(1);
});

it('the end of an outage is logged although one connection was closed for good during it', async () => {
  const [background, reader] = [connections.background, connections.reader!];
  await Promise.all([background.ping(), reader.ping()]);
  proxy.refuse();
  proxy.cut();
  await Promise.all([attempts(background, 2), attempts(reader, 2)]);
  await closeConnection(reader);
  await proxy.accept();
  await background.ping();
  await eventually(() => expect(logged.at(-1)).toBe('Redis can be reached again'));
  expect(logged).toHaveLength(2);
});

it('an outage is logged as of no request, although one of them runs when a connection tells of it', () => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const see = () => void seen.push(requests.getStore());
  Logger.overrideLogger({ log: see, warn: see, error: see });
  try {
    requests.run('of a request', () => {
      connections.background.emit('close');
      connections.background.emit('error', new Error('connect ECONNREFUSED'));
      connections.background.emit('ready');
    });
  } finally {
    Logger.overrideLogger({ log: record, warn: record, error: record });
  }
  expect(seen).toEqual([undefined, undefined]);
});

it('an outage that one connection notices late is logged once', () => {
  const [background, reader] = [connections.background, connections.reader!];
  // What ioredis reports of an outage, in an order that depends on the machine's load.
  for (const client of [background, reader]) client.emit('close');
  for (const client of [background, reader]) {
    client.emit('error', new Error('connect ECONNREFUSED'));
    client.emit('ready');
  }
  expect(logged).toEqual([expect.stringMatching(/^Redis cannot be reached/), 'Redis can be reached again']);
});

it('a new reason of an outage is one line, however often and with however many connections it occurs', async () => {
  const first = await RedisServer.start({ args: ['--requirepass', 'a-secret'] });
  const { port } = first;
  const own = createConnections(resolveRedisSessionOptions({ url: `redis://:a-secret@127.0.0.1:${port}` }));
  const clients = [own.background, own.reader!];
  let second: RedisServer | undefined;
  try {
    await Promise.all(clients.map((client) => client.ping()));
    await first.stop();
    await Promise.all(clients.map((client) => attempts(client, 3)));
    second = await RedisServer.start({ port, args: ['--requirepass', 'another-secret'] });
    await eventually(() => expect(logged).toHaveLength(2));
    await Promise.all(clients.map((client) => attempts(client, 2)));
    await second.stop();
    await Promise.all(clients.map((client) => attempts(client, 2)));
    second = await RedisServer.start({ port, args: ['--requirepass', 'a-secret'] });
    await Promise.all(clients.map((client) => client.ping()));
    await eventually(() => expect(logged).toHaveLength(3));
    expect(logged).toEqual([
      expect.stringMatching(/^Redis cannot be reached, retrying: .*ECONNREFUSED/),
      expect.stringMatching(
        /^Redis still .*, for another reason: .*WRONGPASS.* Correct user and password in the url, /,
      ),
      'Redis can be reached again',
    ]);
    expect(logged.join()).not.toContain('a-secret');
  } finally {
    await closeConnections(own);
    await Promise.all([first.stop(), second?.stop()]);
  }
});

it('a Redis whose password the url does not have is logged with what to do', async () => {
  const redis = await RedisServer.start({ args: ['--requirepass', 'a-secret'] });
  // In this namespace, also `npm run test:acl` does not log in.
  const own = createConnections(resolveRedisSessionOptions({ url: redis.url, namespace: 'anonymous' }));
  try {
    own.background.connect().catch(() => undefined);
    const line =
      /^Redis cannot be reached, retrying: .*NOAUTH.*\."? Redis requires a password: put user and password into the url, /;
    await eventually(() => expect(logged).toEqual([expect.stringMatching(line)]));
  } finally {
    await closeConnections(own);
    await redis.stop();
  }
});

it('Sentinels that name a server that is down are not logged as unreachable', async () => {
  const master = await RedisServer.start();
  const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
  const sentinel = await Sentinel.start('main', master);
  await master.stop();
  const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
  const own = createConnections(resolveRedisSessionOptions({ sentinels, name: 'main' }));
  const told: string[] = [];
  try {
    own.background.on('error', ({ message }) => told.push(message));
    own.background.connect().catch(() => undefined);
    await eventually(() => expect(told.join()).toMatch(/ECONNREFUSED.*All sentinels are unreachable/));
    expect(logged).toEqual([expect.stringMatching(/^Redis cannot be reached, retrying: .*ECONNREFUSED/)]);
  } finally {
    await closeConnections(own);
    await Promise.all([sentinel.stop(), replica.stop()]);
  }
});

it('a number of a database that the server does not have is logged with what to do', async () => {
  const own = createConnections(resolveRedisSessionOptions({ url: `${server.url}/99` }));
  try {
    own.background.connect().catch(() => undefined);
    const line =
      /^Redis cannot be reached, retrying: .*DB index is out of range.*\. End the url with the number of a database /;
    await eventually(() => expect(logged).toEqual([expect.stringMatching(line)]));
  } finally {
    await closeConnections(own);
  }
});

it('a connection leaves a demoted master at its first READONLY error', async () => {
  const { background } = connections;
  const request = connections.request.of(undefined)!;
  await Promise.all([background.set('a', '1'), request.connect()]);
  const ids = () => Promise.all([background.client('ID'), request.client('ID')]);
  const before = await ids();
  await direct.replicaof('127.0.0.1', '1');
  expect(await failure(background.incr('a'))).toContain('READONLY');
  expect(await failure(request.incr('a'))).toContain('READONLY');
  await direct.replicaof('NO', 'ONE');
  const after = await eventually(ids);
  for (const [i, id] of after.entries()) expect(id).toBeGreaterThan(before[i]!);
  expect(await background.incr('a')).toBe(2);
});

it('a url provides the address of Redis in its query as well, but not the behaviour of the connections', async () => {
  const query =
    'db=4&commandTimeout=1&stringNumbers=true&enableOfflineQueue=&autoResendUnfulfilledCommands=yes&connectionName=theirs';
  const own = createConnections(resolveRedisSessionOptions({ url: `${withAllRights(proxy.url)}?${query}` }));
  const request = own.request.of(undefined)!;
  try {
    proxy.delayReplies(100);
    expect(await own.background.incr('of-url')).toBe(1);
    expect(await direct.client('LIST')).toMatch(/name=nest:session:background .* db=4 /);
    expect(request.options.autoResendUnfulfilledCommands).toBe(false);
  } finally {
    proxy.delayReplies(0);
    void closeConnections(own);
  }
});

describe('a client of the application', () => {
  const options: RedisOptions = {
    ...ALL_RIGHTS,
    lazyConnect: true,
    db: 4,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout: 1,
    blockingTimeout: 1,
    stringNumbers: true,
    protocol: 3,
    replyMapping: 'resp3',
    connectionName: 'theirs',
  };

  it('provides the address of Redis, but not the behaviour of the connections', async () => {
    const client = new Redis(proxy.port, { ...options });
    const own = createConnections(resolveRedisSessionOptions({ client }));
    try {
      await own.background.hset('hash', 'field', '1');
      expect(await own.background.hgetall('hash')).toEqual({ field: '1' });
      expect(await own.background.call('HGETALL', 'hash')).toEqual(['field', '1']);
      expect(await own.background.config('GET', 'port')).toEqual(['port', `${server.port}`]);
      expect(await own.background.incr('number')).toBe(1);
      const entry = await own.background.xadd('stream', '*', 'field', '1');
      await own.reader!.ping();
      proxy.delayReplies(500);
      const read = await own.reader!.xread('BLOCK', 1, 'STREAMS', 'stream', '0');
      expect(read).toEqual([['stream', [[entry, ['field', '1']]]]]);
      proxy.delayReplies(0);
      expect(await direct.client('LIST')).toMatch(/name=nest:session:background .* db=4 /);
      proxy.refuse();
      proxy.cut();
      const waiting = own.background.incr('number');
      await attempts(own.background, 2);
      await proxy.accept();
      expect(await waiting).toBe(2);
    } finally {
      void closeConnections(own);
    }
  });

  it('is not used, changed or closed', async () => {
    const client = new Redis(server.port, { ...options, commandTimeout: 60_000 });
    await client.connect();
    const id = await client.client('ID');
    const before = { ...client.options };
    const listeners = client.eventNames().map((name) => [name, client.listenerCount(name)]);
    const own = createConnections(resolveRedisSessionOptions({ client }));
    await own.background.set('b', '1');
    void closeConnections(own);
    await eventually(() => own.background.status === 'end');
    expect(client.options).toEqual(before);
    expect(client.eventNames().map((name) => [name, client.listenerCount(name)])).toEqual(listeners);
    expect(await client.client('ID')).toBe(id);
    expect(await direct.client('LIST')).toMatch(new RegExp(`id=${id} .* name=theirs .* cmd=client\\|id `));
    client.disconnect();
  });
});

it('closing a connection fails its waiting commands, also between two attempts to connect', async () => {
  const { background } = connections;
  await background.ping();
  proxy.refuse();
  proxy.cut();
  await eventually(() => background.status === 'reconnecting', { interval: 1 });
  const waiting = failure(background.incr('a'));
  await closeConnection(background);
  expect(await waiting).toContain('Connection is closed');
});

it('closing a connection that has ended starts no timer', async () => {
  const { background } = connections;
  await background.ping();
  await background.quit();
  await eventually(() => background.status === 'end');
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  void closeConnection(background);
  expect(timers()).toBe(before);
});

it('closing a connection clears the socket timeout timer, a private member of ioredis', async () => {
  const { background } = connections;
  await background.ping();
  const timer = () => (background as any).socketTimeoutTimer;
  const waiting = failure(background.blpop('nobody-pushes', 0));
  expect(timer()).toBeDefined();
  const afterClose = new Promise((resolve) => background.once('close', () => resolve(timer())));
  proxy.cut();
  expect(await afterClose).toBeUndefined();
  await closeConnection(background);
  expect(await waiting).toContain('Connection is closed');
});
