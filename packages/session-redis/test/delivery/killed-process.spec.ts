import { eventually, LeakGuard } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';
import { MINUTE, Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

const GROUP = 'default';
/** So long that no process loses an event because it stands still: the clock of Redis is stepped instead. */
const LEASE = 10 * MINUTE;

describe.each([1, 4])('with %d partitions', (partitions) => {
  let store: Store;
  let web: App;
  const workers: WorkerProcess[] = [];
  const startWorker = async (environment: Record<string, string> = {}) => {
    const settings = { REDIS_URL: store.server.url, PARTITIONS: String(partitions), LEASE: `${LEASE}ms` };
    const worker = await WorkerProcess.start({ ...settings, ...environment });
    workers.push(worker);
    return worker;
  };

  beforeAll(async () => {
    store = await Store.open({ partitions, steppableClock: true });
    web = await App.start({ redis: { url: store.server.url, partitions }, handlers: false });
  });
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

  it('an event whose process is killed while it handles it is handled by another one, and delays no other', async () => {
    const doomed = await startWorker({ HANG: '1' });
    const id = await endSession();
    await doomed.saysLine(new RegExp(`^handling deleted:${id}`));
    const next = await startWorker();
    await doomed.end('SIGKILL');
    const others = [await endSession(), await endSession(), await endSession()];
    for (const other of others) await next.saysLine(new RegExp(`^handled deleted:${other}$`));
    await isPending(1);
    expect(next.lines.join('\n')).not.toContain(id);
    await store.server.stepClock(LEASE);
    const lapsed = performance.now();
    await next.saysLine(new RegExp(`^handled deleted:${id}$`));
    const took = Math.round(performance.now() - lapsed);
    process.stdout.write(`Killed while it handled an event: handled by another process ${took} ms after the lease\n`);
    await isPending(0);
    expect(next.lines).toContain(`handling deleted:${id} ["apple"]`);
    expect(next.lines.filter((line) => line === `handled deleted:${id}`)).toHaveLength(1);
    await next.end();
  });

  it('an event that is recorded while no process is there is delivered after the start', async () => {
    const id = await endSession();
    const next = await startWorker();
    await next.saysLine(new RegExp(`^handled deleted:${id}$`));
    await isPending(0);
    expect(next.lines.filter((line) => line.startsWith('handled'))).toHaveLength(1);
  });
});
