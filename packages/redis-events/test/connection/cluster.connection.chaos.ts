import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, type RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { closeConnections, createConnections, type RedisConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';

LeakGuard.install();
const logged: string[] = [];
const record = (line: string) => void logged.push(line);
Logger.overrideLogger({ log: record, warn: record, error: record });

const SECOND = 1000;
const LONG = 60 * SECOND;

let cluster: RedisCluster;
let opened: RedisConnections[] = [];
let admins: Redis[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
}, LONG);
beforeEach(() => {
  logged.length = 0;
});
afterEach(async () => {
  await Promise.all(opened.map((connections) => closeConnections(connections)));
  for (const admin of admins) admin.disconnect();
  opened = [];
  admins = [];
});
afterAll(() => cluster.stop());

/** The connections of an instance of the library, and that of its requests. */
async function connect(commandTimeout = LONG) {
  const options = resolveRedisSessionOptions({
    cluster: { nodes: cluster.addresses.slice(0, 2) },
    commandTimeout: `${commandTimeout}ms`,
  });
  const connections = createConnections(options);
  opened.push(connections);
  const requests = new RequestConnection(connections.request, { commandTimeout });
  await connections.background.connect();
  await connections.request.connect();
  return { ...connections, requests };
}

type Connected = Awaited<ReturnType<typeof connect>>;

function admin(node: RedisServer): Redis {
  const client = new Redis(node.url, { retryStrategy: () => null }).on('error', () => undefined);
  admins.push(client);
  return client;
}

const primaryOf = (key: string) => cluster.primaryOf(slotOf(key));

/** A key of each primary. */
async function keysOfPrimaries(): Promise<Map<RedisServer, string>> {
  const keys = new Map<RedisServer, string>();
  for (let i = 0; keys.size < 3; i++) keys.set(await primaryOf(`{${i}}`), `{${i}}:key`);
  return keys;
}

const another = async (node: RedisServer) => [...(await keysOfPrimaries()).keys()].find((each) => each !== node)!;
const increment = (connection: RequestConnection, key: string) => connection.run((client) => client.incr(key), key);

/** Lets two nodes both think that a slot is about to move, without any of its keys. */
async function beginToMove(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [source, target] = [admin(from), admin(to)];
  await target.cluster('SETSLOT', slot, 'IMPORTING', (await source.cluster('MYID')) as string);
  await source.cluster('SETSLOT', slot, 'MIGRATING', (await target.cluster('MYID')) as string);
}

const move = (from: RedisServer, to: RedisServer, key: string) =>
  admin(from).migrate('127.0.0.1', to.port, key, 0, 5000);

it('requests reach the primary of each key, on one connection to each', async () => {
  const { requests, request } = await connect();
  for (const [node, key] of await keysOfPrimaries()) {
    expect(await increment(requests, key)).toBe(1);
    expect(await admin(node).get(key)).toBe('1');
  }
  expect([...request.all]).toHaveLength(3);
});

it('requests follow a slot that has moved', async () => {
  const { requests } = await connect();
  const key = '{moved}:key';
  const from = await primaryOf(key);
  await increment(requests, key);
  await cluster.moveSlots([slotOf(key)], await another(from));
  expect(await increment(requests, key)).toBe(2);
});

it(
  'requests go on while slots move back and forth, and each is executed once',
  async () => {
    const { requests } = await connect();
    const keys = ['a', 'b', 'c'].map((tag) => `{back-${tag}}:key`);
    let isMoving = true;
    const counts = keys.map(async (key) => {
      let count = 0;
      for (; isMoving; count++) expect(await increment(requests, key)).toBe(count + 1);
      return count;
    });
    for (let round = 0; round < 6; round++) {
      for (const key of keys) await cluster.moveSlots([slotOf(key)], await another(await primaryOf(key)));
    }
    isMoving = false;
    for (const count of await Promise.all(counts)) expect(count).toBeGreaterThan(6);
  },
  LONG,
);

describe('while the keys of a slot move', () => {
  const [SESSION, SHADOW] = ['{moving}:session', '{moving}:shadow'];
  const slot = slotOf(SESSION);
  let from: RedisServer;
  let to: RedisServer;
  beforeEach(async () => {
    from = await primaryOf(SESSION);
    to = await another(from);
    await admin(from).hset(SESSION, 'field', 'value');
    await admin(from).set(SHADOW, '', 'EX', 600);
    await beginToMove(slot, from, to);
  });
  afterEach(async () => {
    await cluster.moveSlots([slot], to);
    await admin(to).del(SESSION, SHADOW);
  });

  const load = (connection: RequestConnection) =>
    connection.run((client) => Promise.all([client.call('HGETALL', SESSION), client.pttl(SHADOW)]), SESSION);

  it.each([
    ['neither key has moved', []],
    ['the first key has moved', [SESSION]],
    ['the second key has moved', [SHADOW]],
    ['both keys have moved', [SESSION, SHADOW]],
  ])('a call that reads two keys finds both when %s', async (_, moved) => {
    const { requests } = await connect();
    for (const key of moved) await move(from, to, key);
    expect(await load(requests)).toEqual([['field', 'value'], expect.any(Number)]);
    expect((await load(requests))[1]).toBeGreaterThan(0);
  });

  it('a script whose keys are on both nodes is executed once, when all of them are on one', async () => {
    const { requests } = await connect();
    await move(from, to, SHADOW);
    const script = "redis.call('HINCRBY', KEYS[1], 'count', 1) return redis.call('EXISTS', KEYS[2])";
    const reply = requests.run((client) => client.eval(script, 2, SESSION, SHADOW), SESSION);
    const first = await Promise.race([reply, pause(200, 'nothing')]);
    await cluster.moveSlots([slot], to);
    expect(first).toBe('nothing');
    expect(await reply).toBe(1);
    expect(await admin(to).hget(SESSION, 'count')).toBe('1');
  });

  it.each<{ of: string; send: (connected: Connected, script: string) => Promise<unknown> }>([
    {
      of: 'a request',
      send: ({ requests }, script) => requests.write((client) => client.eval(script, 1, SESSION), SESSION),
    },
    { of: 'background work', send: ({ background }, script) => background.eval(script, 1, SESSION) },
  ])(
    'a script of $of whose keys have moved waits for the others of their slot, which it may derive',
    async ({ send }) => {
      const connected = await connect();
      await move(from, to, SESSION);
      // It knows the name of the other key by itself.
      const script = `return redis.call('APPEND', '${SHADOW}', 'x')`;
      const reply = send(connected, script);
      const first = await Promise.race([reply, pause(200, 'nothing')]);
      // Fails where the key is on both nodes.
      await cluster.moveSlots([slot], to);
      expect(first).toBe('nothing');
      expect(await reply).toBe(1);
    },
  );

  it('a call that has failed sends no further command when a key has moved', async () => {
    const { requests } = await connect(300);
    await move(from, to, SESSION);
    let sent = 0;
    const failed = await failureOf(
      requests.run(async (client) => {
        // The second time, the call knows that keys move.
        if (sent++ > 0) from.freeze();
        return client.hincrby(SESSION, 'count', 1);
      }, SESSION),
    );
    from.thaw();
    expect(sent).toBe(2);
    expect(failed).toContain('did not reply within 300 ms');
    await eventually(() => load(requests));
    await cluster.moveSlots([slot], to);
    expect(await admin(to).hget(SESSION, 'count')).toBeNull();
  });

  it('a call that has failed is not sent to the other node', async () => {
    const { requests } = await connect(300);
    await move(from, to, SESSION);
    from.freeze();
    const failed = await failureOf(requests.run((client) => client.hincrby(SESSION, 'count', 1), SESSION));
    from.thaw();
    expect(failed).toContain('did not reply within 300 ms');
    // The reply to the call comes before the one to this.
    await eventually(() => load(requests));
    expect(await admin(from).cluster('COUNTKEYSINSLOT', slot)).toBe(1);
    await cluster.moveSlots([slot], to);
    expect(await admin(to).hget(SESSION, 'count')).toBeNull();
  });
});

it(
  'a request whose reply is lost with its connection fails at once, and is never sent again',
  async () => {
    const { requests } = await connect();
    const key = '{lost}:key';
    const node = await primaryOf(key);
    await increment(requests, key);
    node.freeze();
    const lost = failureOf(increment(requests, key));
    // Sent, and not read by the frozen server.
    await pause(50);
    await admin(await another(node)).ping();
    await node.kill();
    expect(await lost).toContain('The connection was lost before Redis replied');
    const after = await primaryOf(key);
    expect(await eventually(() => admin(after).get(key))).toBe('1');
    expect(await increment(requests, key)).toBe(2);
    await node.restart();
    await cluster.replicasOf(after);
  },
  LONG,
);

it(
  'a primary that is killed fails requests of its keys within the command timeout, and no others',
  async () => {
    const { requests } = await connect(SECOND);
    const keys = await keysOfPrimaries();
    for (const key of keys.values()) await increment(requests, key);
    const [[node, itsKey], ...others] = [...keys] as [[RedisServer, string], ...[RedisServer, string][]];
    await admin(node).wait(1, 0);
    await node.kill();
    const slow: number[] = [];
    const failures: string[] = [];
    let hasReturned = false;
    const returned = (async () => {
      for (;;) {
        const begin = performance.now();
        const failure = await failureOf(increment(requests, itsKey));
        if (failure === undefined) return;
        failures.push(failure);
        if (performance.now() - begin > 2 * SECOND) slow.push(performance.now() - begin);
      }
    })().finally(() => (hasReturned = true));
    while (!hasReturned) for (const [, key] of others) await increment(requests, key);
    await returned;
    expect(failures).not.toHaveLength(0);
    expect(slow).toEqual([]);
    await eventually(() => expect(logged).toHaveLength(2));
    expect(logged).toEqual([
      expect.stringMatching(/^Redis cannot be reached, retrying: .*ECONNREFUSED/),
      'Redis can be reached again',
    ]);
    await node.restart();
    await cluster.replicasOf(await primaryOf(itsKey));
  },
  LONG,
);

it(
  'background commands wait for the replica of a primary that is killed',
  async () => {
    const { background } = await connect();
    const key = '{background}:key';
    const node = await primaryOf(key);
    await background.incr(key);
    await admin(node).wait(1, 0);
    await node.kill();
    expect(await background.incr(key)).toBe(2);
    await node.restart();
    await cluster.replicasOf(await primaryOf(key));
  },
  LONG,
);

it(
  'a request is not sent to the new primary when the old one, frozen meanwhile, redirects it',
  async () => {
    const { requests } = await connect(300);
    const key = '{thawed}:key';
    const node = await primaryOf(key);
    await eventually(() => increment(requests, key));
    node.freeze();
    const failure = await failureOf(increment(requests, key));
    const after = await primaryOf(key);
    node.thaw();
    expect(failure).toMatch(/did not reply within 300 ms|The connection was lost/);
    await cluster.replicasOf(after);
    expect(await admin(after).get(key)).toBe('1');
  },
  LONG,
);

it(
  'a question for the slots that a killed node never answered leaves no timer',
  async () => {
    const { background } = await connect();
    const node = await primaryOf('{silent}:key');
    node.freeze();
    // The nodes are asked in a random order, until one replies. LeakGuard finds the timer at the end of the file.
    await eventually(async () => {
      const begin = performance.now();
      await new Promise<void>((resolve) => (background as unknown as Cluster).refreshSlotsCache(() => resolve()));
      return performance.now() - begin > SECOND / 2;
    });
    await node.kill();
    await node.restart();
    await cluster.untilStable();
  },
  LONG,
);

describe('a client of the application', () => {
  it('gives its nodes and its credentials, and is neither used, changed nor closed', async () => {
    for (const node of cluster.nodes) await admin(node).acl('SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all');
    const redisOptions = { username: 'app', password: 'secret', connectionName: 'theirs' };
    const client = new Cluster(cluster.addresses, { redisOptions, slotsRefreshInterval: undefined! });
    await client.ping();
    const before = { ...client.options };
    const listeners = client.eventNames().map((name) => [name, client.listenerCount(name)]);
    const own = createConnections(resolveRedisSessionOptions({ client }));
    opened.push(own);
    const requests = new RequestConnection(own.request, { commandTimeout: LONG });
    const user = (each: Redis) => each.acl('WHOAMI');
    expect(await requests.run(user, '{any}')).toBe('app');
    expect(await user(own.background)).toBe('app');
    expect(client.options).toEqual(before);
    expect(client.eventNames().map((name) => [name, client.listenerCount(name)])).toEqual(listeners);
    await closeConnections(own);
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });
});

async function failureOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(SessionStoreError);
    return String(error);
  }
}
