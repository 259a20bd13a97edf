import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';
import { monitorOf } from '../support/monitor-of.js';

LeakGuard.install();

const GROUP = 'default';
/** So long that a stalled process keeps its lease: the test steps the clock of Redis instead. */
const LEASE = 10 * MINUTE;
/** Milliseconds between two polls for abandoned events. */
const POLL_INTERVAL = 1000;

/** Records, by the clock of Redis, when the instances poll a stream for abandoned events. */
class PollMonitor {
  readonly #polls: number[] = [];
  #claim = Infinity;

  private constructor(
    private readonly connection: Redis,
    stream: string,
  ) {
    connection.on('monitor', (seconds: string, [command = '', key, ...rest]: string[]) => {
      if (key !== stream) return;
      const at = Number(seconds) * 1000;
      // A call with more arguments is the claim script.
      if (/^xpending$/i.test(command) && rest.length === 1) this.#polls.push(at);
      if (/^xclaim$/i.test(command)) this.#claim = Math.min(this.#claim, at);
    });
  }

  static async start({ client }: Store, stream: string): Promise<PollMonitor> {
    return new PollMonitor(await monitorOf(client), stream);
  }

  /** Milliseconds between two polls. */
  shortestPause(): number {
    return Math.min(...this.#polls.slice(1).map((at, i) => at - this.#polls[i]!));
  }

  /** The number of polls of an instance from then on, up to its first find. */
  pollsUntilClaim(since: number): number {
    return this.#polls.filter((at) => at >= since && at <= this.#claim).length;
  }

  stop(): void {
    this.connection.disconnect();
  }
}

describe.each([1, 4])('with %d partitions', (partitions) => {
  let store: SteppableStore;
  let web: App;
  const workers: WorkerProcess[] = [];
  let monitor: PollMonitor | undefined;
  const startWorker = async (environment: Record<string, string> = {}) => {
    const settings = { REDIS_URL: store.server.url, PARTITIONS: String(partitions), LEASE: `${LEASE}ms` };
    const worker = await WorkerProcess.start({ ...settings, ...environment });
    workers.push(worker);
    return worker;
  };

  beforeAll(async () => {
    store = await Store.openSteppable({ partitions });
    web = await App.start({ redis: { url: store.server.url, partitions }, handlers: false });
  });
  afterEach(() => monitor?.stop());
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    await web.stop();
    await store.close();
  });

  async function endSession(): Promise<string> {
    const agent = web.agent();
    const { id } = (await agent.post('/set/cart', { value: ['apple'] })).json() as { id: string };
    await agent.post('/logout');
    return id;
  }

  const isPending = (count: number) => eventually(async () => expect(await store.pending(GROUP)).toBe(count));

  it('an event whose process is killed while handling it is handled by another process and delays no other event', async () => {
    const doomed = await startWorker({ HANG: '1' });
    const id = await endSession();
    await doomed.saysLine(new RegExp(`^handling deleted-${id}`));
    const next = await startWorker();
    await doomed.end('SIGKILL');
    const others = [await endSession(), await endSession(), await endSession()];
    for (const other of others) await next.saysLine(new RegExp(`^handled deleted-${other}$`));
    await isPending(1);
    expect(next.lines.join('\n')).not.toContain(id);
    monitor = await PollMonitor.start(store, store.keysOf(id).events);
    // A slow machine delays all polls, and the closest two the least.
    await eventually(() => expect(monitor!.shortestPause()).toBeLessThan(1.5 * POLL_INTERVAL));
    const lapsed = (await store.now()) + LEASE;
    await store.server.stepClock(LEASE);
    await next.saysLine(new RegExp(`^handled deleted-${id}$`));
    expect(monitor.pollsUntilClaim(lapsed)).toBeLessThanOrEqual(1);
    await isPending(0);
    expect(next.lines).toContain(`handling deleted-${id} ["apple"]`);
    expect(next.lines.filter((line) => line === `handled deleted-${id}`)).toHaveLength(1);
    await next.end();
  });

  it('an event recorded while no process is running is delivered after the next start', async () => {
    const id = await endSession();
    const next = await startWorker();
    await next.saysLine(new RegExp(`^handled deleted-${id}$`));
    await isPending(0);
    expect(next.lines.filter((line) => line.startsWith('handled'))).toHaveLength(1);
  });
});
