import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, type RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { ClusterInstance } from '../support/cluster.instance.js';
import { print } from '../support/figures.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const SESSIONS = Number(process.env['SESSIONS'] ?? 20_000);
const INSTANCES = [
  { name: 'one', group: 'default' },
  { name: 'two', group: 'default' },
  { name: 'three', group: 'audit' },
];
const MINUTE = 60_000;
/**
 * Milliseconds. How long a primary is frozen, and how long an event may be on its way when a node or an instance ends.
 */
const FROZEN = 10_000;
const ON_ITS_WAY = 5000;

const partitions = new SessionPartitions('nest:session', 64);
const slots = partitions.all.map(({ prefix }) => slotOf(prefix));
const numberOf = (id: string) => partitions.all.indexOf(partitions.of(id));

interface Fault {
  readonly name: string;
  readonly began: number;
  readonly ended: number;
  /** The partitions whose node has the fault. */
  readonly affected: ReadonlySet<number>;
  /** Whether the last commands that a node executed may be lost. */
  readonly losesLastCommands: boolean;
}

let cluster: RedisCluster;
let folder: string;
let workers: ClusterInstance[] = [];
/** Those that were killed, too. */
const all: ClusterInstance[] = [];
const faults: Fault[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
  folder = await mkdtemp(join(tmpdir(), 'cluster-'));
}, MINUTE);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  await cluster.stop();
  await rm(folder, { recursive: true });
}, MINUTE);

async function start(name: string, group: string, slotsOfIt: readonly object[]): Promise<ClusterInstance> {
  const worker = await ClusterInstance.start({ name, group, folder, nodes: cluster.addresses, slots: slotsOfIt });
  all.push(worker);
  return worker;
}

const tell = (command: string, argument?: unknown) =>
  Promise.all(workers.map((worker) => worker.does(command, argument)));

async function partitionsOf(node: RedisServer): Promise<Set<number>> {
  const owners = await Promise.all(slots.map((slot) => cluster.primaryOf(slot)));
  return new Set(owners.flatMap((owner, number) => (owner === node ? [number] : [])));
}

/** Asks a node on a connection of its own. */
async function ask<T>({ url }: RedisServer, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true }).on('error', () => undefined);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

/** Resolves when the replicas of a node have all that it has executed. */
async function caughtUp(node: RedisServer): Promise<void> {
  await ask(node, async (client) => {
    await eventually(
      async () => {
        const text = await client.info('replication');
        const [, own] = /^master_repl_offset:(\d+)/m.exec(text)!;
        const offsets = [...text.matchAll(/state=online,offset=(\d+)/g)].map(([, offset]) => offset);
        expect(offsets).toEqual([own]);
      },
      { timeout: MINUTE, interval: 1 },
    );
  });
}

/** What it was sent while it was frozen, it has executed before it replies to the last of these. */
async function repliesTo(node: RedisServer): Promise<void> {
  for (let i = 0; i < 3; i++) await ask(node, (client) => client.ping());
}

/** While no request uses the partitions of a node, and its replica has all, the fault begins. */
async function whenCaughtUp(node: RedisServer, fault: () => Promise<unknown> | void): Promise<void> {
  await tell('hold', [...(await partitionsOf(node))]);
  await caughtUp(node);
  await fault();
  await tell('release');
}

async function suffer(
  name: string,
  node: RedisServer | undefined,
  fault: () => Promise<unknown>,
  { losesLastCommands = false } = {},
): Promise<void> {
  const affected = node ? await partitionsOf(node) : new Set<number>();
  await tell('resume');
  await tell('load', 2000);
  const began = Date.now();
  await fault();
  faults.push({ name, began, ended: Date.now(), affected, losesLastCommands });
  await tell('load', 2000);
  await cluster.untilStable();
  for (const each of cluster.nodes) if (each.isRunning) await repliesTo(each);
  await tell('settle');
  await Promise.all(all.map((worker) => worker.read()));
  const { calls, failed, longest, others, settled } = figuresOf(faults.at(-1)!);
  print(
    `${name}, ${((Date.now() - began) / 1000).toFixed(1)} s: ${calls} calls up to now, ${failed} failed, ${settled} ` +
      `settled; of other partitions ${others} failed, the longest took ${longest.toFixed(0)} ms`,
  );
  expect(all.flatMap(({ problems }) => problems)).toEqual([]);
  if (node) expect(othersFailed(faults.at(-1)!)).toEqual([]);
}

function slowCalls({ began, ended, affected }: Fault) {
  const calls = all.flatMap((worker) => worker.calls).filter(({ at }) => at >= began && at <= ended);
  return { calls, others: calls.filter(({ partition }) => partition >= 0 && !affected.has(partition)) };
}

const othersFailed = (fault: Fault) => slowCalls(fault).others.filter(({ error }) => error !== null);

function figuresOf(fault: Fault) {
  const { calls, others } = slowCalls(fault);
  return {
    calls: workers.reduce((sum, worker) => sum + worker.count, 0),
    settled: workers.reduce((sum, worker) => sum + worker.unsettled, 0),
    failed: calls.filter(({ error }) => error !== null).length,
    others: others.filter(({ error }) => error !== null).length,
    longest: Math.max(0, ...others.map(({ duration }) => duration)),
  };
}

const setNodeTimeout = (milliseconds: number) =>
  Promise.all(
    cluster.nodes.map((node) => ask(node, (client) => client.config('SET', 'cluster-node-timeout', `${milliseconds}`))),
  );

interface Stored {
  readonly sessions: Map<string, { n: string | null; principal: string | null }>;
  readonly index: string[];
}

/** All live sessions of the Cluster, and all index entries. */
async function stored(): Promise<Stored> {
  const sessions: Stored['sessions'] = new Map();
  const index: string[] = [];
  const nodes = new Set(await Promise.all(slots.map((slot) => cluster.primaryOf(slot))));
  for (const node of nodes) {
    await ask(node, async (client) => {
      for await (const keys of client.scanStream({ match: 'nest:session:*', count: 1000 })) {
        for (const key of new Set(keys as string[])) {
          const [, id] = /:sessions:expires:([\w-]{43})$/.exec(key) ?? [];
          const [, value] = /:index:[^:]+:(.*)$/.exec(key) ?? [];
          if (value !== undefined)
            for (const each of await client.zrange(key, '0', '-1')) index.push(`${value} ${each}`);
          if (id === undefined || (await client.pttl(key)) < 0) continue;
          const hash = await client.hgetall(partitions.of(id).session(id));
          const { [`sessionAttr:${PRINCIPAL_ATTRIBUTE}`]: principal = null } = hash;
          const text = principal === null ? null : (JSON.parse(principal) as string);
          sessions.set(id, { n: hash['sessionAttr:n'] ?? null, principal: text });
        }
      }
    });
  }
  return { sessions, index };
}

it(
  `${SESSIONS} sessions are as three instances have left them after reshards, failovers, a frozen primary and a killed instance, and each end is reported once`,
  async () => {
    const share = (i: number) =>
      Array.from({ length: SESSIONS }, (_, n) => ({ name: n })).filter(({ name }) => name % INSTANCES.length === i);
    workers = await Promise.all(INSTANCES.map(({ name, group }, i) => start(name, group, share(i))));
    await tell('create');

    const reshard = Array.from({ length: 2000 }, (_, slot) => slot);
    const [home, away] = [await cluster.primaryOf(0), await cluster.primaryOf(16_383)];
    await suffer('reshard of 2000 slots', undefined, () => cluster.moveSlots(reshard, away));
    await suffer('reshard back', undefined, () => cluster.moveSlots(reshard, home));

    await suffer('CLUSTER FAILOVER', home, () => cluster.failover(home));

    const killed = await cluster.primaryOf(slots[32]!);
    const kill = async () => {
      await whenCaughtUp(killed, () => killed.kill());
      await cluster.untilStable();
    };
    await suffer('kill -9 of a primary', killed, kill, { losesLastCommands: true });
    await killed.restart();

    const frozen = await cluster.primaryOf(slots[60]!);
    const freeze = async () => {
      await setNodeTimeout(2 * FROZEN);
      frozen.freeze();
      await pause(FROZEN);
      frozen.thaw();
      await repliesTo(frozen);
    };
    await suffer('primary frozen 10 s', frozen, freeze);
    expect(await cluster.primaryOf(slots[60]!)).toBe(frozen);
    const freezeLonger = async () => {
      await setNodeTimeout(2000);
      await whenCaughtUp(frozen, () => frozen.freeze());
      await pause(FROZEN);
      frozen.thaw();
      await cluster.untilStable();
    };
    await suffer('primary frozen 10 s and replaced', frozen, freezeLonger, { losesLastCommands: true });
    expect(await cluster.primaryOf(slots[60]!)).not.toBe(frozen);

    await tell('resume');
    await tell('load', 2000);
    const [victim, ...others] = workers as [ClusterInstance, ...ClusterInstance[]];
    await victim.end();
    const killedAt = Date.now();
    await victim.read();
    workers = others;
    workers.push(await start('four', 'default', victim.left()));
    await workers.at(-1)!.does('create');
    await suffer('an instance was killed', undefined, () => Promise.resolve());

    // Sessions live up to 15 s after their creation, and a sweep may find them 65 s later.
    for (const group of ['default', 'audit']) {
      await eventually(
        async () => {
          await Promise.all(all.map((worker) => worker.read()));
          const heard = new Set(all.flatMap((worker) => (worker.group === group ? worker.events : [])).map(nameOf));
          expect(all.flatMap(({ ends }) => ends).filter((end) => !heard.has(nameOf(end)))).toEqual([]);
        },
        { timeout: 3 * MINUTE, interval: 2000 },
      );
      const events = all.flatMap((worker) => worker.events.map((event) => ({ ...event, worker })));
      const ofGroup = events.filter(({ worker }) => worker.group === group).toSorted((a, b) => a.at - b.at);
      const known = new Set(all.flatMap(({ ends, possible }) => [...ends, ...possible]).map(nameOf));
      expect(ofGroup.filter((event) => !known.has(nameOf(event)) || event.dataLost)).toEqual([]);
      const first = new Map<string, (typeof ofGroup)[number]>();
      const repeated = ofGroup.filter((event) => {
        const earlier = first.get(nameOf(event));
        if (!earlier) first.set(nameOf(event), event);
        return earlier;
      });
      const isExplained = (event: (typeof ofGroup)[number]) => {
        const { at, worker, id } = first.get(nameOf(event))!;
        if (worker === victim && at > killedAt - ON_ITS_WAY) return true;
        return faults.some(
          ({ losesLastCommands, affected, began, ended }) =>
            losesLastCommands && affected.has(numberOf(id)) && at > began - ON_ITS_WAY && at < ended,
        );
      };
      expect(repeated.filter((event) => !isExplained(event))).toEqual([]);
      print(`group ${group}: ${first.size} ends, ${repeated.length} of them reported again because of a fault`);
    }

    const ledger = workers.flatMap((worker) => worker.left().map(({ versions }) => versions));
    expect(ledger.filter((versions) => versions.length !== 1)).toEqual([]);
    expect(ledger).toHaveLength(SESSIONS);
    const { sessions, index } = await stored();
    const expected = ledger.map(([version]) => version!);
    expect([...sessions.keys()].toSorted()).toEqual(expected.map(({ id }) => id).toSorted());
    for (const { id, n, principal } of expected)
      expect({ id, ...sessions.get(id)! }).toEqual({ id, n: `${n}`, principal });
    const entries = expected.flatMap(({ id, principal }) =>
      principal === null ? [] : [`${hashOfValue(principal)} ${id}`],
    );
    expect(index.toSorted()).toEqual(entries.toSorted());
    print(`${sessions.size} sessions and ${index.length} index entries are as the instances have left them`);
  },
  30 * MINUTE,
);

/** An end: with the number that the session had. */
function nameOf({ type, id, n }: { type: string; id: string; n: number | null }): string {
  return `${type} ${id} ${n}`;
}
