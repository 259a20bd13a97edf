import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { recordedExpirations } from '../support/key-event.fixture.js';
import { Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

/** A text as clients send it to Redis. */
const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

const POINTS = [
  { point: 'before its first claim is there', direction: 'request', passed: 0 },
  { point: 'when Redis has executed its first claim', direction: 'reply', passed: 0 },
  { point: 'before its third claim is there', direction: 'request', passed: 2 },
  { point: 'when Redis has executed its third claim', direction: 'reply', passed: 2 },
] as const;

describe.each([
  { expirations: 'buckets', partitions: 1, points: POINTS },
  { expirations: 'sorted-set', partitions: 1, points: POINTS },
  // Between two of them.
  { expirations: 'buckets', partitions: 4, points: POINTS.slice(2) },
  { expirations: 'sorted-set', partitions: 4, points: POINTS.slice(2) },
] as const)('in the $expirations, with $partitions partitions', ({ expirations, partitions, points }) => {
  let store: Store;
  let proxy: TcpProxy;
  const workers: WorkerProcess[] = [];
  beforeAll(async () => {
    store = await Store.open({ partitions, expirations });
    proxy = await TcpProxy.start({ port: store.server.port });
  });
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    await proxy.stop();
    await store.close();
  });

  async function startWorker(url: string): Promise<WorkerProcess> {
    // It sweeps on command only, not by its cron job.
    const environment = { REDIS_URL: url, NOTIFICATIONS: 'off', CRON: '0 0 0 29 2 *', PARTITIONS: String(partitions) };
    const worker = await WorkerProcess.start(environment);
    workers.push(worker);
    return worker;
  }

  /** Only claims name a member of a bucket, or have these three keys. */
  const isClaim = (data: Buffer) =>
    store.partitions.all.some(({ bucketList, events, deadLetters }) =>
      expirations === 'buckets'
        ? data.includes('expires:') && data.includes(deadLetters)
        : data.includes(['3', bucketList, events, deadLetters].map(bulk).join('')),
    );

  /** Resolves when the claim after the first `passed` ones is held: its request or its reply. */
  async function untilClaimHeld(direction: 'request' | 'reply', passed: number): Promise<void> {
    let seen = 0;
    const ignore = proxy.onData('request', (data) => void (seen += isClaim(data) ? 1 : 0));
    proxy.hold(direction, (burst) => seen > passed && isClaim(burst));
    await proxy.untilHeld(direction);
    ignore();
  }

  it.each(points)(
    'each end is recorded once and handled when a process is killed $point',
    async ({ direction, passed }) => {
      await store.client.flushall();
      const doomed = await startWorker(proxy.url);
      const ids = await Promise.all(Array.from({ length: 400 }, () => store.create({ cart: '["apple"]' })));
      await Promise.all(ids.map((id) => store.runOut(id)));
      // All in the bucket of the minute that is swept next, or due in the sorted set.
      for (const keys of store.partitions.all) {
        const due = await store.client.zrange(keys.ends, '0', '-1');
        if (due.length > 0) await store.client.zadd(keys.ends, ...due.flatMap((id) => [60_000, id]));
        const minutes = await store.client.zrange(keys.bucketList, '0', '-1');
        if (minutes.length === 0) continue;
        await store.client.sunionstore(keys.bucket('60000'), ...minutes.map((minute) => keys.bucket(minute)));
        await store.client.del(keys.bucketList, ...minutes.map((minute) => keys.bucket(minute)));
        await store.client.zadd(keys.bucketList, 60_000, '60000');
      }

      const held = untilClaimHeld(direction, passed);
      doomed.tell('sweep');
      await held;
      await doomed.end('SIGKILL');
      proxy.cut();
      proxy.release();
      const before = await recordedExpirations(store);
      expect(before.size).toBeLessThan(ids.length);

      const next = await startWorker(store.server.url);
      next.tell('sweep');
      await next.saysLine(/^swept .*"corrupt":0/);
      const recorded = await recordedExpirations(store);
      expect(ids.map((id) => recorded.get(id))).toEqual(ids.map(() => 1));
      for (const id of ids) {
        const handled = `handled expired-${id}`;
        if (!doomed.lines.includes(handled)) await next.saysLine(new RegExp(`^${handled}$`));
      }
      await next.end();
    },
  );
});
