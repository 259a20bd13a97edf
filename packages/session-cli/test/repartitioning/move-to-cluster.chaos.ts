import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer, type RedisServerOptions } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';

LeakGuard.install();

const SESSIONS = 5000;
const AT_ONCE = 500;
const MINUTE = 60_000;
// Milliseconds. Beside other work, ten thousand events take longer than a minute.
const PATIENCE = 3 * MINUTE;

const partitions = new SessionPartitions('nest:session', 64);

let server: RedisServer;
let cluster: RedisCluster;
let running: EventInstance[] = [];
beforeAll(async () => {
  [server, cluster] = await Promise.all([RedisServer.start(), RedisCluster.start()]);
}, MINUTE);
afterAll(async () => {
  await stop();
  await Promise.all([server.stop(), cluster.stop()]);
}, MINUTE);

async function stop(): Promise<void> {
  await Promise.all(running.map((instance) => instance.stop()));
  running = [];
}

/** An instance of a group, and the events that it has handled. */
async function start(group: string, address: RedisSessionModuleOptions) {
  const handled: SessionEvent[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionEvent)
    handle(event: SessionEvent) {
      handled.push(event);
    }
  }
  const redis = { ...address, cleanup: { cron: '0 0 0 29 2 *' }, notifications: 'off', events: { group } } as const;
  const instance = await EventInstance.start({ redis, providers: [Handlers] });
  running.push(instance);
  const repository = instance.module.get(IndexedSessionRepository, { strict: false });
  return { handled, repository, get: instance.module.get.bind(instance.module) };
}

/** The id of a new session, whose cart is that id. */
async function created(repository: IndexedSessionRepository, interval: number): Promise<string> {
  const session = repository.createSession();
  session.setAttribute('cart', session.id);
  session.maxInactiveInterval = interval;
  session.principalName = `user ${session.id}`;
  await repository.save(session);
  return session.id;
}

const sorted = (ids: Iterable<string>) => [...ids].toSorted();
const idsOf = (events: readonly SessionEvent[], type: string) =>
  sorted(events.filter((event) => event.type === type).map(({ sessionId }) => sessionId));

/** How long the sessions still live, in milliseconds; negative when they have ended. */
const timesToLive = (client: Redis | Cluster, ids: readonly string[]) =>
  Promise.all(ids.map((id) => client.pttl(partitions.of(id).shadow(id))));

it(
  `redis-cli moves ${SESSIONS} sessions of 64 partitions to a Cluster, with their ends, indexes, groups and unread events`,
  async () => {
    const before = await start('default', { url: server.url, partitions: 64 });
    await before.get(SessionEventGroups, { strict: false }).create('mail');
    const create = (interval: number) => created(before.repository, interval);
    const ids: string[] = [];
    while (ids.length < SESSIONS) {
      ids.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => create(3600)))));
    }
    const [deleted, living] = [ids.slice(0, AT_ONCE), ids.slice(AT_ONCE)];
    await Promise.all(deleted.map((id) => before.repository.deleteById(id)));
    await eventually(() => expect(before.handled).toHaveLength(SESSIONS + AT_ONCE), { timeout: PATIENCE });
    // They end while no instance runs.
    const expired = await Promise.all(Array.from({ length: AT_ONCE }, () => create(1)));
    await eventually(() => expect(before.handled).toHaveLength(SESSIONS + 2 * AT_ONCE), { timeout: PATIENCE });
    await stop();
    const old = new Redis(server.url);
    await eventually(async () => expect(Math.max(...(await timesToLive(old, expired)))).toBeLessThan(0));

    const [node] = cluster.nodes;
    const addresses = [`127.0.0.1:${node!.port}`, '--cluster-from', `127.0.0.1:${server.port}`];
    // It prints a line for each key.
    const output = { maxBuffer: Infinity };
    await promisify(execFile)('redis-cli', ['--cluster', 'import', ...addresses, '--cluster-copy'], output);

    const client = new Cluster(cluster.addresses);
    const [was, is] = [await timesToLive(old, living), await timesToLive(client, living)];
    old.disconnect();
    client.disconnect();
    // Those of the old server were asked for first.
    for (const [i, left] of is.entries()) {
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(was[i]!);
      expect(left).toBeGreaterThan(was[i]! - MINUTE);
    }
    const address = { cluster: { nodes: cluster.addresses } };
    const [after, mail] = [await start('default', address), await start('mail', address)];
    for (const id of living) {
      expect((await after.repository.findById(id))!.getAttribute('cart')).toBe(id);
      expect((await after.repository.findByPrincipalName(`user ${id}`)).map((session) => session.id)).toEqual([id]);
    }
    const found = await Promise.all([...deleted, ...expired].map((id) => after.repository.findById(id)));
    expect(found.filter((session) => session)).toEqual([]);

    await after.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: MINUTE });
    await Promise.all(living.map((id) => after.repository.deleteById(id)));
    await eventually(() => expect(idsOf(mail.handled, 'created')).toEqual(sorted([...ids, ...expired])), {
      timeout: PATIENCE,
    });
    for (const [{ handled }, ends] of [[after, living] as const, [mail, ids] as const]) {
      await eventually(() => expect(idsOf(handled, 'expired')).toEqual(sorted(expired)), { timeout: PATIENCE });
      await eventually(() => expect(idsOf(handled, 'deleted')).toEqual(sorted(ends)), { timeout: PATIENCE });
      const wholeEnds = handled.filter(({ session, sessionId }) => session.getAttribute('cart') === sessionId);
      expect(wholeEnds).toHaveLength(handled.length);
    }
    // What it had handled on the server, it does not handle again.
    expect(idsOf(after.handled, 'created')).toEqual([]);
  },
  10 * MINUTE,
);

it(
  'a server that is restarted as a Cluster of one node, and spread over others then, keeps its sessions, ends and events',
  async () => {
    const newFolder = () => mkdtemp(join(tmpdir(), 'to-cluster-'));
    const [dir, prepared] = [await newFolder(), await newFolder()];
    const asCluster = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
    const args = [...asCluster, '--cluster-require-full-coverage', 'no', '--cluster-announce-ip', '127.0.0.1'];
    const servers: RedisServer[] = [];
    const open = async (options: RedisServerOptions) => {
      servers.push(await RedisServer.start(options));
      return servers.at(-1)!;
    };
    try {
      // The new data folder, in advance.
      const node = await open({ dir: prepared, args });
      await cli(node, ['CLUSTER', 'ADDSLOTSRANGE', '0', '16383']);
      await node.stop();

      const old = await open({ dir });
      const before = await start('default', { url: old.url, partitions: 64 });
      const create = (interval: number) => created(before.repository, interval);
      const ids = await Promise.all(Array.from({ length: AT_ONCE }, () => create(3600)));
      const expired = await Promise.all(Array.from({ length: AT_ONCE }, () => create(1)));
      await eventually(() => expect(before.handled).toHaveLength(2 * AT_ONCE), { timeout: MINUTE });
      await cli(old, ['SAVE']);
      await old.stop();
      await rename(join(dir, 'dump.rdb'), join(prepared, 'dump.rdb'));

      const first = await open({ dir: prepared, args, port: old.port });
      await eventually(async () => expect(await cli(first, ['CLUSTER', 'INFO'])).toContain('cluster_state:ok'), {
        timeout: MINUTE,
      });
      // An instance that still has the address of one server goes on.
      const found = await eventually(() => before.repository.findById(ids[0]!));
      expect(found!.getAttribute('cart')).toBe(ids[0]);
      await stop();
      const nodes = [{ host: '127.0.0.1', port: first.port }];
      const after = await start('default', { cluster: { nodes } });
      for (const id of ids) expect((await after.repository.findById(id))!.getAttribute('cart')).toBe(id);

      const nodesOfCluster = [first];
      const agree = async () => {
        for (const each of nodesOfCluster) {
          const info = await cli(each, ['CLUSTER', 'INFO']);
          expect(info).toContain('cluster_state:ok');
          expect(info).toContain(`cluster_known_nodes:${nodesOfCluster.length}`);
        }
        await manage(['check', `127.0.0.1:${first.port}`]);
      };
      for (let i = 0; i < 2; i++) {
        const empty = await open({ args });
        await manage(['add-node', `127.0.0.1:${empty.port}`, `127.0.0.1:${first.port}`]);
        nodesOfCluster.push(empty);
        await eventually(agree, { timeout: MINUTE });
      }
      await manage(['rebalance', `127.0.0.1:${first.port}`, '--cluster-use-empty-masters']);
      await eventually(agree, { timeout: MINUTE });
      for (const each of nodesOfCluster) expect(Number(await cli(each, ['DBSIZE']))).toBeGreaterThan(0);

      await after.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: MINUTE });
      await Promise.all(ids.map((id) => after.repository.deleteById(id)));
      await eventually(() => expect(idsOf(after.handled, 'expired')).toEqual(sorted(expired)), { timeout: MINUTE });
      await eventually(() => expect(idsOf(after.handled, 'deleted')).toEqual(sorted(ids)), { timeout: MINUTE });
      expect(idsOf(after.handled, 'created')).toEqual([]);
    } finally {
      await stop();
      await Promise.all(servers.map((each) => each.stop()));
      await Promise.all([dir, prepared].map((each) => rm(each, { recursive: true, force: true })));
    }
  },
  5 * MINUTE,
);

async function cli({ port }: RedisServer, command: readonly string[]): Promise<string> {
  return (await promisify(execFile)('redis-cli', ['-e', '-p', `${port}`, ...command])).stdout;
}

/** redis-cli says on its standard output what is wrong. */
async function manage(command: readonly string[]): Promise<void> {
  await promisify(execFile)('redis-cli', ['--cluster', ...command]).catch(({ stdout }: { stdout: string }) => {
    throw new Error(`redis-cli --cluster ${command.join(' ')}: ${stdout}`);
  });
}
