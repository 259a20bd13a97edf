import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionDeletedEvent, SessionExpiredEvent } from '@nest-session/core';
import { SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster } from '@nest-session/testing';
import { Cluster, type Redis } from 'ioredis';
import { repartition } from '../../src/index.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { print } from '../../../session-redis/test/support/figures.js';
import { contentOf, fill } from '../../../session-redis/test/support/filled.store.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const WORKER = fileURLToPath(new URL('../support/repartition.worker.mjs', import.meta.url));
const LONG = 5 * MINUTE;

@Injectable()
class Handlers {
  readonly heard: string[] = [];
  isBroken = false;

  @OnSessionEvent(SessionDeletedEvent)
  @OnSessionEvent(SessionExpiredEvent)
  handle({ type, session }: SessionDeletedEvent | SessionExpiredEvent) {
    if (this.isBroken) throw new Error('broken');
    this.heard.push(`${type} ${String(session.getAttribute('cart'))}`);
  }
}

let cluster: RedisCluster;
let client: Redis;
beforeAll(async () => {
  cluster = await RedisCluster.start();
  // Both kinds of clients have all commands.
  client = new Cluster([...cluster.addresses]) as unknown as Redis;
}, LONG);
afterAll(async () => {
  client.disconnect();
  await cluster.stop();
});

/** The worker, and its exit code. */
function move(namespace: string, to: number): [ChildProcess, Promise<number | null>] {
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    CLUSTER: JSON.stringify(cluster.addresses),
    NAMESPACE: namespace,
    TO: `${to}`,
  };
  const worker = spawn(process.execPath, [WORKER], { env, stdio: 'inherit' });
  return [worker, once(worker, 'close').then(([code]) => code as number | null)];
}

it.each([
  [2, 64, 'buckets'],
  [64, 8, 'sorted-set'],
] as const)(
  'everything moves from %d to %d partitions on a Cluster, with ends in %s, although the process is killed again and again',
  async (from, to, ends) => {
    const namespace = `killed-${ends}`;
    const [old, next] = [from, to].map((count) => new SessionPartitions(namespace, count)) as [
      SessionPartitions,
      SessionPartitions,
    ];
    await fill(client, old, ends, 300);
    const content = await contentOf(client, old);
    const recorded = () => client.hget(next.meta, 'partitions');
    const killedAt = new Set<string>();
    for (let kills = 0; ; kills++) {
      const [worker, code] = move(namespace, to);
      const before = await recorded();
      let isOver = false;
      void code.then(() => (isOver = true));
      // It begins, and is killed a little later each time.
      const hasBegun = async () => isOver || (await client.exists(next.instances)) === 1;
      await eventually(async () => expect(await hasBegun()).toBe(true), { timeout: MINUTE });
      const isDone = await Promise.race([code.then(() => true), pause(80 * kills).then(() => false)]);
      worker.kill('SIGKILL');
      const result = await code;
      killedAt.add(String(await recorded()));
      // As half a minute later.
      await client.del(next.instances);
      if (!isDone) continue;
      expect([result, await recorded()]).toEqual([0, `${to}`]);
      print(`${from} to ${to}: killed ${kills} times, at ${[...killedAt].join(', ')}; the last run began at ${before}`);
      break;
    }
    expect(killedAt.size).toBeGreaterThan(1);
    expect(await contentOf(client, next)).toEqual(content);
  },
  LONG,
);

it(
  'applications on a Cluster find their sessions after the move, and each end is handled once, with its data',
  async () => {
    const redis = { cluster: { nodes: cluster.addresses }, namespace: 'applications' };
    const start = (partitions: number) =>
      EventInstance.start({ redis: { ...redis, partitions }, providers: [Handlers] });
    const before = await start(64);
    before.module.get(Handlers).isBroken = true;
    const repository = before.module.get(IndexedSessionRepository);
    const ids: string[] = [];
    for (let i = 0; i < 300; i++) {
      const session = repository.createSession();
      session.setAttribute('cart', i);
      await session.save();
      ids.push(session.id);
    }
    for (const id of ids.slice(0, 100)) await repository.deleteById(id);
    await before.stop();
    const old = new SessionPartitions(redis.namespace, 64);
    for (const id of ids.slice(100, 200)) await client.del(old.of(id).shadow(id));
    const began = performance.now();
    // A hundred of them are alive.
    expect((await repartition(redis, { from: 64, to: 16 })).moved).toBeGreaterThanOrEqual(50);
    print(`300 sessions in ${Math.round(performance.now() - began)} ms`);
    const after = await start(16);
    try {
      await after.module.get(SessionExpirationSweeper).runOnce({ ahead: 60 * MINUTE });
      const { heard } = after.module.get(Handlers);
      await eventually(() => expect(heard.length).toBeGreaterThanOrEqual(200), { timeout: MINUTE });
      const expected = ids.slice(0, 200).map((_, i) => `${i < 100 ? 'deleted' : 'expired'} ${i}`);
      expect(heard.toSorted()).toEqual(expected.toSorted());
      const moved = after.module.get(IndexedSessionRepository);
      for (const [i, id] of ids.slice(200).entries())
        expect((await moved.findById(id))?.getAttribute('cart')).toBe(200 + i);
    } finally {
      await after.stop();
    }
  },
  LONG,
);
