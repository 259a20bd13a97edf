import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { LeakGuard, Sentinel, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import {
  type RedisSessionModuleOptions,
  resolveRedisSessionOptions,
} from '../../../session-redis/src/configuration/redis-session.options.js';
import { closeConnections, createConnections, type RedisConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';

LeakGuard.install();
Logger.overrideLogger(false);

const SECOND = 1000;
const LONG = 60 * SECOND;
const TOO_FEW = '0 of the 1 replicas in option `replicas` replied within';

const opened: RedisConnections[] = [];
const admins: Redis[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((connections) => closeConnections(connections)));
});
afterAll(() => {
  for (const each of admins) each.disconnect();
});

/** The connections of an instance whose writes must be on a replica. */
async function connect(redis: RedisSessionModuleOptions, commandTimeout = LONG) {
  const options = resolveRedisSessionOptions({ replicas: 1, commandTimeout: `${commandTimeout}ms`, ...redis });
  const connections = createConnections(options);
  opened.push(connections);
  const requests = new RequestConnection(connections.request, options, connections.writes);
  connections.background.connect().catch(() => undefined);
  const { request, writes } = connections;
  await Promise.all([...new Set([request, writes])].map((nodes) => nodes.connect()));
  return { ...connections, requests };
}

function admin({ url }: RedisServer): Redis {
  const client = new Redis(url, { retryStrategy: () => null }).on('error', () => undefined);
  admins.push(client);
  return client;
}

const increment = (connection: RequestConnection, key: string) => connection.write((client) => client.incr(key), key);

async function failureOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(SessionStoreError);
    return String(error);
  }
}

async function startReplica(port: number): Promise<RedisServer> {
  return RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${port}`, '--repl-diskless-sync-delay', '0'] });
}

/** Resolves when a replica has all that its primary has. */
/** Resolves when a replica follows: a primary calls one `online` that still loads the data. */
const untilSynchronized = (primary: Redis) =>
  eventually(async () => {
    // Replicated, and without a key.
    await primary.publish('synchronized', '');
    expect(await primary.wait(1, 100)).toBe(1);
  });

describe('on a server with a replica', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  /** Between the two. What it holds in the direction of replies is what the replica has not received. */
  let link: TcpProxy;
  let direct: Redis;
  let copy: Redis;
  beforeAll(async () => {
    primary = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    link = await TcpProxy.start({ port: primary.port });
    replica = await startReplica(link.port);
    direct = admin(primary);
    copy = admin(replica);
  });
  beforeEach(async () => {
    await untilSynchronized(direct);
    await direct.config('RESETSTAT');
  });
  afterEach(() => {
    link.release();
    replica.thaw();
    primary.thaw();
  });
  afterAll(async () => {
    await link.stop();
    await Promise.all([replica.stop(), primary.stop()]);
  });

  const waits = async () => (await commandStats(direct)).get('wait')?.calls ?? 0;

  it('a write succeeds when the replica has it, not before', async () => {
    const { requests } = await connect({ url: primary.url });
    link.hold('reply');
    let isDone = false;
    const write = requests.write((client) => client.set('held', 'the-write'), 'held').finally(() => (isDone = true));
    await eventually(async () => expect(await direct.get('held')).toBe('the-write'));
    await link.untilHeld();
    await pause(50);
    expect(isDone).toBe(false);
    expect(await copy.get('held')).toBeNull();
    link.release();
    expect(await write).toBe('OK');
    expect(await copy.get('held')).toBe('the-write');
  });

  it('a script succeeds when the replica has what it wrote, also when Redis does not know the script', async () => {
    const { requests } = await connect({ url: primary.url });
    const run = (value: string) =>
      requests.write(async (client) => {
        client.defineCommand('remember', { numberOfKeys: 1, lua: "return redis.call('SET', KEYS[1], ARGV[1]).ok" });
        return (client as unknown as { remember(key: string, value: string): Promise<string> }).remember('kept', value);
      }, 'kept');
    expect(await run('first')).toBe('OK');
    expect(await copy.get('kept')).toBe('first');
    await direct.script('FLUSH');
    expect(await run('second')).toBe('OK');
    expect(await copy.get('kept')).toBe('second');
  });

  it('writes of one turn of the event loop share one WAIT', async () => {
    const { requests } = await connect({ url: primary.url });
    const counts = await Promise.all(Array.from({ length: 100 }, () => increment(requests, 'shared')));
    expect(counts).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(await waits()).toBe(1);
  });

  it('writes that come while a replica is waited for gather, and share the next WAIT', async () => {
    const { requests } = await connect({ url: primary.url });
    link.hold('reply');
    const writes = [increment(requests, 'gathering')];
    await link.untilHeld();
    for (let i = 0; i < 20; i++) {
      writes.push(increment(requests, 'gathering'));
      await pause(1);
    }
    expect(await direct.get('gathering')).toBe('1');
    link.release();
    expect(await Promise.all(writes)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1));
    expect(await waits()).toBe(2);
  });

  it('loads are neither held up by a write that waits, nor wait themselves', async () => {
    const { requests } = await connect({ url: primary.url });
    await increment(requests, 'loaded');
    link.hold('reply');
    const write = increment(requests, 'loaded');
    await link.untilHeld();
    const before = await waits();
    for (let i = 0; i < 10; i++) expect(await requests.run((client) => client.get('loaded'), 'loaded')).toBe('2');
    expect(await waits()).toBe(before);
    link.release();
    expect(await write).toBe(2);
  });

  it('a write that a frozen replica has not received fails after half of the command timeout, and has taken effect once', async () => {
    const { requests } = await connect({ url: primary.url }, 400);
    replica.freeze();
    const begin = performance.now();
    expect(await failureOf(increment(requests, 'frozen'))).toContain(`${TOO_FEW} 200 ms`);
    expect(performance.now() - begin).toBeGreaterThanOrEqual(190);
    expect(await direct.get('frozen')).toBe('1');
    replica.thaw();
    expect(await eventually(() => increment(requests, 'frozen'))).toBeGreaterThan(1);
    expect(await copy.get('frozen')).toBe(await direct.get('frozen'));
  });

  it('writes that waited for their turn behind one that fails are executed, and wait for replicas themselves', async () => {
    const { requests } = await connect({ url: primary.url }, 2 * SECOND);
    replica.freeze();
    const first = failureOf(increment(requests, 'behind'));
    await eventually(async () => expect(await direct.get('behind')).toBe('1'));
    const second = increment(requests, 'behind');
    expect(await first).toContain(TOO_FEW);
    replica.thaw();
    expect(await second).toBe(2);
  });

  it('a write whose time ends while it waits for its turn is never sent', async () => {
    const { requests } = await connect({ url: primary.url }, 400);
    await increment(requests, 'turn');
    primary.freeze();
    const first = failureOf(increment(requests, 'turn'));
    // It has left.
    await pause(20);
    const second = failureOf(requests.write((client) => client.set('never', 'sent'), 'never'));
    expect(await first).toContain('Redis did not reply within 400 ms');
    expect(await second).toContain('Redis did not reply within 400 ms');
    primary.thaw();
    expect(await eventually(() => increment(requests, 'turn'))).toBeGreaterThan(2);
    expect(await direct.get('never')).toBeNull();
  });

  it('writes whose connection is lost while they wait fail at once, and the next ones succeed', async () => {
    const { requests, writes } = await connect({ url: primary.url });
    await increment(requests, 'cut');
    link.hold('reply');
    const lost = failureOf(increment(requests, 'cut'));
    await link.untilHeld();
    for (const client of writes.all) client.stream.destroy();
    expect(await lost).toContain('The connection was lost before Redis replied');
    link.release();
    expect(await increment(requests, 'cut')).toBe(3);
  });

  it('an error of Redis fails a write at once, without replicas', async () => {
    const { requests } = await connect({ url: primary.url });
    await direct.set('text', 'x');
    replica.freeze();
    expect(await failureOf(requests.write((client) => client.hset('text', 'a', 'b'), 'text'))).toContain('WRONGTYPE');
  });

  it('a write fails where there are fewer replicas than the option says', async () => {
    const { requests } = await connect({ url: primary.url, replicas: 2 }, 200);
    expect(await failureOf(increment(requests, 'two'))).toContain(
      '1 of the 2 replicas in option `replicas` replied within 100 ms',
    );
  });

  it('without the option, a write does not wait, and shares the connection of the loads', async () => {
    const { requests, request, writes } = await connect({ url: primary.url, replicas: 0 });
    replica.freeze();
    expect(await increment(requests, 'alone')).toBe(1);
    expect(writes).toBe(request);
    expect(await waits()).toBe(0);
  });

  it('a write that a killed replica has not received fails, and writes succeed when the replica is back', async () => {
    const { requests } = await connect({ url: primary.url }, 400);
    await replica.kill();
    expect(await failureOf(increment(requests, 'killed'))).toContain(TOO_FEW);
    expect(await direct.get('killed')).toBe('1');
    await replica.restart();
    await untilSynchronized(direct);
    expect(await eventually(() => increment(requests, 'killed'))).toBeGreaterThan(1);
  });
});

it(
  'on a Cluster, only writes of the primary whose replica is frozen fail, and writes follow their slot',
  async () => {
    const cluster = await RedisCluster.start({ replicas: 1 });
    try {
      const { requests, writes } = await connect({ cluster: { nodes: cluster.addresses } }, 2 * SECOND);
      const keys = new Map<RedisServer, string>();
      for (let i = 0; keys.size < 3; i++) keys.set(await cluster.primaryOf(slotOf(`{${i}}`)), `{${i}}:key`);
      for (const key of keys.values()) expect(await eventually(() => increment(requests, key))).toBeGreaterThan(0);
      expect([...writes.all]).toHaveLength(3);

      const [[frozen, itsKey], ...others] = [...keys] as [[RedisServer, string], ...[RedisServer, string][]];
      const [replica] = await cluster.replicasOf(frozen);
      replica!.freeze();
      expect(await failureOf(increment(requests, itsKey))).toContain(TOO_FEW);
      for (const [, key] of others) expect(await increment(requests, key)).toBeGreaterThan(1);
      expect(await requests.run((client) => client.exists(itsKey), itsKey)).toBe(1);
      replica!.thaw();
      expect(await eventually(() => increment(requests, itsKey))).toBeGreaterThan(1);

      await cluster.moveSlots([slotOf(itsKey)], others[0]![0]);
      const count = await increment(requests, itsKey);
      const [copy] = await cluster.replicasOf(others[0]![0]);
      const reader = admin(copy!);
      await reader.readonly();
      expect(await reader.get(itsKey)).toBe(String(count));
    } finally {
      await cluster.stop();
    }
  },
  LONG,
);

it(
  'after a failover by Sentinels, writes fail until the new master has a replica',
  async () => {
    const master = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    const replica = await startReplica(master.port);
    const sentinel = await Sentinel.start('sessions', master);
    let another: RedisServer | undefined;
    try {
      const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
      const { requests } = await connect({ sentinels, name: 'sessions' }, SECOND);
      await untilSynchronized(admin(master));
      expect(await increment(requests, 'kept')).toBe(1);
      await master.kill();
      await sentinel.look();
      await eventually(async () => expect(await failureOf(increment(requests, 'kept'))).toContain(TOO_FEW), {
        timeout: LONG,
      });
      expect(Number(await admin(replica).get('kept'))).toBeGreaterThan(1);
      another = await startReplica(replica.port);
      await untilSynchronized(admin(replica));
      await eventually(async () => expect(await increment(requests, 'kept')).toBeGreaterThan(2));
    } finally {
      await sentinel.stop();
      await Promise.all([another?.stop(), replica.stop(), master.stop()]);
    }
  },
  2 * LONG,
);
