import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { recordedExpirations } from '../support/key-event.fixture.js';
import { Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

const POINTS = [
  { point: 'before its first claim is there', direction: 'request', passed: 0 },
  { point: 'when Redis has executed its first claim', direction: 'reply', passed: 0 },
  { point: 'before its third claim is there', direction: 'request', passed: 2 },
  { point: 'when Redis has executed its third claim', direction: 'reply', passed: 2 },
] as const;

describe.each([
  { partitions: 1, points: POINTS },
  // Between two of them.
  { partitions: 4, points: POINTS.slice(2) },
])('with $partitions partitions', ({ partitions, points }) => {
  let store: Store;
  let proxy: TcpProxy;
  const workers: WorkerProcess[] = [];
  beforeAll(async () => {
    store = await Store.open({ partitions });
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

  /** Only claims name a member of a bucket. */
  const isClaim = (data: Buffer) =>
    data.includes('expires:') && store.partitions.all.some(({ deadLetters }) => data.includes(deadLetters));

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
      // All in the bucket of the minute that is swept next.
      for (const keys of store.partitions.all) {
        const minutes = await store.client.zrange(keys.bucketList, '0', '-1');
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
        const handled = `handled expired:${id}`;
        if (!doomed.lines.includes(handled)) await next.saysLine(new RegExp(`^${handled}$`));
      }
      await next.end();
    },
  );
});
