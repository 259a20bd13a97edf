import { setTimeout as pause } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, Sessions } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { Cleanup, CleanupTurns } from '../../../redis-events/src/cleanup/cleanup.job.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { commandStats } from '../support/command.stats.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { SentCommands } from '../support/sent.commands.js';

LeakGuard.install();

const MINUTE = 60_000;
const LONG = 2 * MINUTE;
const PARTITIONS = 64;

let cluster: RedisCluster;
let admins: Redis[];
beforeAll(async () => {
  cluster = await RedisCluster.start();
  admins = cluster.nodes.map(({ url }) => new Redis(url).on('error', () => undefined));
}, LONG);
afterAll(async () => {
  for (const admin of admins) admin.disconnect();
  await cluster.stop();
});

let namespaces = 0;
let namespace: string;
let running: EventInstance[] = [];
let handled: string[];
let heard: string[];
let fails: (id: string) => boolean;
/** Where handlers wait, and broadcast handlers. */
let handlerGate: Gate | undefined;
let gate: Gate | undefined;
beforeEach(() => {
  namespace = `events-${++namespaces}`;
  [handled, heard, fails] = [[], [], () => false];
  [handlerGate, gate] = [undefined, undefined];
});
afterEach(async () => {
  await Promise.all(running.map((instance) => instance.stop()));
  running = [];
  EventInstance.log.lines.length = 0;
}, LONG);

@Injectable()
class Handlers {
  @OnSessionEvent(SessionEvent)
  async handle({ id }: SessionEvent) {
    handled.push(id);
    await handlerGate?.pass();
    if (fails(id)) throw new Error('on purpose');
  }
}

@Injectable()
class BroadcastHandlers {
  @OnSessionEvent(SessionEvent, { broadcast: true })
  async hear({ id }: SessionEvent) {
    heard.push(id);
    await gate?.pass();
  }
}

/** With the pace of applications. */
const SLOWLY = { pollInterval: 1000, wishRenewal: MINUTE };

async function start(
  redis: RedisSessionModuleOptions = {},
  providers = [Handlers, BroadcastHandlers],
  pace: object = SLOWLY,
): Promise<EventInstance> {
  const instance = await EventInstance.start({
    redis: {
      cluster: { nodes: cluster.addresses },
      namespace,
      cleanup: { cron: '0 0 0 29 2 *' },
      notifications: 'off',
      ...redis,
    },
    providers,
    pace,
  });
  running.push(instance);
  return instance;
}

const partitions = () => new SessionPartitions(namespace, PARTITIONS);
const repositoryOf = ({ module }: EventInstance) => module.get(IndexedSessionRepository, { strict: false });
const groupsOf = ({ module }: EventInstance) => module.get(SessionEventGroups, { strict: false });

/** Creates sessions until so many partitions have one; their ids. */
async function createIn(instance: EventInstance, count = PARTITIONS, interval = 1800): Promise<string[]> {
  const repository = repositoryOf(instance);
  const ids = new Map<unknown, string>();
  while (ids.size < count) {
    const session = repository.createSession();
    const keys = partitions().of(session.id);
    if (ids.has(keys.prefix)) continue;
    session.setAttribute('cart', 'full');
    session.maxInactiveInterval = interval;
    ids.set(keys.prefix, session.id);
    await repository.save(session);
  }
  return [...ids.values()];
}

const endIn = (instance: EventInstance, ids: readonly string[]) =>
  Promise.all(ids.map((id) => repositoryOf(instance).deleteById(id)));

/** On each node, a number of all connections of the instances for a purpose, such as `ssub`. */
async function connectionsOf(purpose: string, number: string): Promise<number[]> {
  const lists = await Promise.all(admins.map(async (admin) => String(await admin.client('LIST'))));
  const numbers = new RegExp(`name=${namespace}:${purpose} .* ${number}=(\\d+)`, 'g');
  return lists.map((list) => total([...list.matchAll(numbers)].map(([, count]) => Number(count))));
}

/** How many channels of the partitions the instances are subscribed to on each node. */
const subscriptions = () => connectionsOf('signals', 'ssub');

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

/** How often the nodes were asked something. */
const calls = async (name: string) =>
  total(await Promise.all(admins.map(async (admin) => (await commandStats(admin)).get(name)?.calls ?? 0)));

const listening = (instances = 1) =>
  eventually(async () => expect(total(await subscriptions())).toBe(PARTITIONS * instances));

it(
  'an instance at rest sends at most five commands a second to each node, its cleanup included',
  async () => {
    const sent = await Promise.all(cluster.nodes.map((node) => SentCommands.on(node)));
    try {
      const instance = await start({ notifications: 'auto' });
      await listening();
      await eventually(async () => expect(await connectionsOf('subscriber', 'psub')).toEqual([1, 1, 1]));
      // In each partition there are a session and its event, which is handled.
      await createIn(instance);
      await eventually(() => expect([handled.length, heard.length]).toEqual([PARTITIONS, PARTITIONS]));
      // What it does at its start is over.
      for (const each of sent) {
        await eventually(async () => {
          const now = await each.now();
          expect(each.between(now - 1, now).length).toBeLessThan(10);
        });
      }
      const begins = await Promise.all(sent.map((each) => each.now()));
      await eventually(async () => (await sent[0]!.now()) - begins[0]! >= 20, { timeout: MINUTE });
      const ends = await Promise.all(sent.map((each) => each.now()));
      await instance.module.get(Cleanup, { strict: false }).run(MINUTE, new AbortController().signal);
      const later = await Promise.all(sent.map((each) => each.now()));
      for (const [i, each] of sent.entries()) {
        const atRest = each.between(begins[i]!, ends[i]!).length / (ends[i]! - begins[i]!);
        const cleanup = each.between(ends[i]!, later[i]!).length / 60;
        expect(atRest + cleanup).toBeLessThan(5);
      }
    } finally {
      for (const each of sent) each.close();
    }
  },
  LONG,
);

it(
  'an event reaches its handlers by a signal, in any partition and in the order of its session',
  async () => {
    const instance = await start();
    await listening();
    // The polls are a minute apart.
    const ids = await createIn(instance);
    await eventually(() => expect([handled.length, heard.length]).toEqual([PARTITIONS, PARTITIONS]));
    await endIn(instance, ids);
    const expected = ids.flatMap((id) => [`created-${id}`, `deleted-${id}`]);
    for (const names of [handled, heard]) {
      await eventually(() => expect(names.toSorted()).toEqual(expected.toSorted()));
      for (const id of ids) expect(names.indexOf(`created-${id}`)).toBeLessThan(names.indexOf(`deleted-${id}`));
    }
  },
  LONG,
);

it(
  'signals are heard from the node that has the partition when its slot has moved',
  async () => {
    const instance = await start();
    await listening();
    const before = await subscriptions();
    const slots = partitions().all.map(({ prefix }) => slotOf(prefix));
    const [one, two] = [await cluster.primaryOf(slots[0]!), await cluster.primaryOf(slots.at(-1)!)];
    const moving = slots.slice(0, 5);
    try {
      await cluster.moveSlots(moving, two);
      const after = before.with(cluster.nodes.indexOf(one), before[cluster.nodes.indexOf(one)]! - moving.length);
      after[cluster.nodes.indexOf(two)]! += moving.length;
      await eventually(async () => expect(await subscriptions()).toEqual(after));
      const ids = await createIn(instance);
      await eventually(() => expect(handled.toSorted()).toEqual(ids.map((id) => `created-${id}`).toSorted()));
    } finally {
      await cluster.moveSlots(moving, one);
    }
  },
  LONG,
);

it(
  'an event that an instance releases is taken over at once, in any partition',
  async () => {
    await Promise.all(admins.map((admin) => admin.config('RESETSTAT')));
    const open: (() => void)[] = [];
    @Injectable()
    class Hanging {
      @OnSessionEvent(SessionEvent)
      handle(): Promise<void> {
        return new Promise((resolve) => open.push(resolve));
      }
    }
    // The other one has looked for abandoned events when there were none, and does so again after the lease. It is
    // busy.
    const busy = new Gate();
    handlerGate = busy;
    const staying = await start({ events: { lease: '1h', concurrency: 1 } });
    await eventually(async () => expect(await calls('xpending')).toBeGreaterThanOrEqual(PARTITIONS));
    const [first] = await createIn(staying, 1);
    await eventually(() => expect(handled).toEqual([`created-${first!}`]));
    const leaving = await start({ events: { lease: '1h', shutdownTimeout: '10ms', concurrency: 256 } }, [Hanging]);
    await listening(2);
    const ids = [first!, ...(await createIn(leaving, PARTITIONS))];
    await eventually(() => expect(open).toHaveLength(PARTITIONS));
    handlerGate = undefined;
    busy.open();
    await leaving.stop();
    await eventually(() => expect(handled.toSorted()).toEqual(ids.map((id) => `created-${id}`).toSorted()));
    for (const finish of open) finish();
  },
  LONG,
);

it(
  'events of other partitions are handled while a primary is down, and those of its own when it is back',
  async () => {
    const instance = await start({ commandTimeout: '5s' });
    await listening();
    const ids = await createIn(instance);
    await eventually(() => expect([handled.length, heard.length]).toEqual([PARTITIONS, PARTITIONS]));
    const node = cluster.nodes[0]!;
    const slots = ids.map((id) => [id, slotOf(partitions().of(id).prefix)] as const);
    const owners = await Promise.all(slots.map(([, slot]) => cluster.primaryOf(slot)));
    const others = ids.filter((_, i) => owners[i] !== node);
    // Events of the primary have been read when it goes down, and the data of their sessions not.
    const [first, second] = [new Gate(), new Gate()];
    const own = ids.filter((_, i) => owners[i] === node);
    gate = first;
    await endIn(instance, own.slice(0, 1));
    await eventually(() => expect(heard).toHaveLength(PARTITIONS + 1));
    await createIn(instance);
    gate = second;
    first.open();
    await eventually(() => expect(heard).toHaveLength(PARTITIONS + 2));
    await node.kill();
    gate = undefined;
    second.open();
    // So slowly that meanwhile the reader asks for events of the primary that is down.
    for (const id of others) {
      await endIn(instance, [id]);
      await pause(50);
    }
    const ended = () => handled.filter((id) => id.startsWith('deleted-')).toSorted();
    const broadcast = () => heard.filter((id) => id.startsWith('deleted-')).toSorted();
    const gone = `deleted-${own[0]!}`;
    const expected = [gone, ...others.map((id) => `deleted-${id}`)].toSorted();
    await eventually(() => expect(ended()).toEqual(expected));
    await eventually(() => expect(broadcast()).toEqual(expected));
    await node.restart();
    await cluster.untilStable();
    await listening();
    handled.length = 0;
    const later = await createIn(instance);
    await eventually(() => expect(handled.toSorted()).toEqual(later.map((id) => `created-${id}`).toSorted()));
  },
  LONG,
);

it(
  'events that wait for a primary that is down take no places from those of the others',
  async () => {
    const concurrency = 4;
    const instance = await start({ events: { concurrency } }, [Handlers]);
    await listening();
    const ids = await createIn(instance);
    await eventually(() => expect(handled).toHaveLength(PARTITIONS));
    const node = cluster.nodes[0]!;
    const owners = await Promise.all(ids.map((id) => cluster.primaryOf(slotOf(partitions().of(id).prefix))));
    const own = ids.filter((_, i) => owners[i] === node).slice(0, concurrency);
    const others = ids.filter((_, i) => owners[i] !== node);
    const ended = () => handled.filter((id) => id.startsWith('deleted-')).toSorted();
    const busy = new Gate();
    handlerGate = busy;
    await endIn(instance, own);
    await eventually(() => expect(ended()).toHaveLength(concurrency));
    await node.kill();
    handlerGate = undefined;
    // Now the events in all places wait until they are acknowledged.
    busy.open();
    await endIn(instance, others);
    const expected = [...own, ...others].map((id) => `deleted-${id}`).toSorted();
    await eventually(() => expect(ended()).toEqual(expected));
    await node.restart();
    await cluster.untilStable();
    await listening();
    handled.length = 0;
    const later = await createIn(instance);
    await eventually(() => expect(handled.toSorted()).toEqual(later.map((id) => `created-${id}`).toSorted()));
  },
  LONG,
);

it(
  'a group, its lag and its dead letters are those of all partitions',
  async () => {
    const instance = await start({ events: { attempts: 1 } });
    const groups = groupsOf(instance);
    await groups.create('mail');
    fails = () => true;
    const ids = await createIn(instance);
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(PARTITIONS));
    const letters = await groups.deadLetters();
    expect(letters.map(({ event }) => event!.sessionId).toSorted()).toEqual(ids.toSorted());
    expect(await groups.list()).toMatchObject([
      { name: 'default', lag: 0, pending: 0, consumers: [{ pending: 0 }] },
      { name: 'mail', lag: PARTITIONS, pending: 0, consumers: [] },
    ]);
    fails = () => false;
    handled.length = 0;
    expect(await groups.replayAll()).toBe(PARTITIONS);
    await eventually(() => expect(handled.toSorted()).toEqual(ids.map((id) => `created-${id}`).toSorted()));
    expect(await groups.deadLetters()).toEqual([]);
    expect(await groups.remove('mail')).toBe('removed');
    expect(await groups.remove('default')).toBe('live');
  },
  LONG,
);

const nodeOf = async ({ prefix }: SessionKeys) =>
  admins[cluster.nodes.indexOf(await cluster.primaryOf(slotOf(prefix)))]!;

/** Gives each partition something to clean up: a bucket that is due. */
async function makeDue(): Promise<void> {
  for (const partition of partitions().all) await (await nodeOf(partition)).zadd(partition.bucketList, 60_000, '60000');
}

it(
  'each partition is cleaned up by one of the instances in a period, and by any of them in the next',
  async () => {
    const instances = [await start(), await start(), await start()];
    const turns = instances.map(({ module }) => module.get(CleanupTurns, { strict: false }));
    await makeDue();
    for (const partition of partitions().all) {
      const taken = await Promise.all(turns.map((each) => each.take(partition, MINUTE)));
      expect(taken.toSorted()).toEqual(['due', 'taken', 'taken']);
      const node = await nodeOf(partition);
      expect(await node.pttl(partition.cleanup)).toBeGreaterThan(0);
      await node.del(partition.cleanup);
      expect(await turns[2]!.take(partition, MINUTE)).toBe('due');
    }
  },
  LONG,
);

it(
  'instances that clean up at the same time share the partitions',
  async () => {
    const instances = [await start(), await start(), await start()];
    await makeDue();
    const swept = instances.map(({ module }) => {
      const sweeps = jest.spyOn(module.get(SessionExpirationSweeper, { strict: false }), 'sweep');
      return () => sweeps.mock.calls.map(([[partition]]) => partition!.prefix);
    });
    const { signal } = new AbortController();
    await Promise.all(instances.map(({ module }) => module.get(Cleanup, { strict: false }).run(MINUTE, signal)));
    for (const each of swept) expect(each()).not.toHaveLength(0);
    const all = swept.flatMap((each) => each());
    expect(all.toSorted()).toEqual(
      partitions()
        .all.map(({ prefix }) => prefix)
        .toSorted(),
    );
  },
  LONG,
);

it(
  'the end of every session is known to another instance by a signal, without a question at rest',
  async () => {
    const [one, two] = [await start(), await start()];
    await listening(2);
    const [first] = await createIn(one);
    const repository = repositoryOf(two);
    expect(await repository.findById(first!)).toBeTruthy();
    await eventually(async () => {
      const [before, heartbeats] = [await calls('hmget'), await calls('ping')];
      // Each of two instances sends one to each of three primaries every second.
      await eventually(async () => expect(await calls('ping')).toBeGreaterThanOrEqual(heartbeats + 12));
      expect(await calls('hmget')).toBe(before);
    });
    await one.module.get(Sessions, { strict: false }).endEverySession();
    const epochs = two.module.get(SessionEpochs, { strict: false });
    const { all } = two.module.get(SessionPartitions, { strict: false });
    await eventually(() => expect(all.filter((keys) => epochs.pending(keys) === undefined)).toEqual([]));
    expect(await repository.findById(first!)).toBeFalsy();
  },
  LONG,
);

describe('key events', () => {
  it(
    'make the expiries of all partitions known at once, on each primary and after slots have moved',
    async () => {
      const instance = await start({ notifications: 'auto' });
      await eventually(async () => expect(await connectionsOf('subscriber', 'psub')).toEqual([1, 1, 1]));
      const slots = partitions().all.map(({ prefix }) => slotOf(prefix));
      const [one, two] = [await cluster.primaryOf(slots[0]!), await cluster.primaryOf(slots.at(-1)!)];
      const moving = slots.slice(0, 5);
      try {
        for (const move of [() => Promise.resolve(), () => cluster.moveSlots(moving, two)]) {
          await move();
          handled.length = 0;
          const ids = await createIn(instance, PARTITIONS, 1);
          // No sweep is due. Redis notices an expired key when somebody looks at it.
          await eventually(async () => {
            await Promise.all(ids.map((id) => repositoryOf(instance).findById(id)));
            const expired = handled.filter((id) => id.startsWith('expired-'));
            expect(expired.toSorted()).toEqual(ids.map((id) => `expired-${id}`).toSorted());
          });
        }
      } finally {
        await cluster.moveSlots(moving, one);
      }
    },
    LONG,
  );

  it(
    'of the application come from every primary, and its subscription is healthy when all of them send some',
    async () => {
      const instance = await start();
      const keys: string[] = [];
      const gaps: unknown[] = [];
      const subscription = instance.module.get(KeyspaceNotificationListener, { strict: false }).listen({
        events: ['set', 'expired'],
        keys: 'cart:*',
        canary: 'cart:canary:',
        handler: ({ key }) => void keys.push(key),
        onGap: (gap) => void gaps.push(gap),
      });
      await eventually(() => expect(subscription.health.state).toBe('listening'));
      expect(gaps.length).toBeGreaterThan(0);
      const names = Array.from({ length: 30 }, (_, i) => `cart:${i}`);
      for (const name of names) {
        await admins[cluster.nodes.indexOf(await cluster.primaryOf(slotOf(name)))]!.set(name, '');
      }
      await eventually(() => expect(keys.toSorted()).toEqual(names.toSorted()));
      const [node] = cluster.nodes;
      await node!.kill();
      await eventually(() => expect(subscription.health.state).toBe('connecting'));
      await node!.restart();
      await cluster.untilStable();
      await eventually(() => expect(subscription.health.state).toBe('listening'));
      await subscription.close();
      expect(subscription.health.state).toBe('stopped');
    },
    LONG,
  );
});
