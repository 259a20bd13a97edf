import { LeakGuard, RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

describe.each([1, 4])('with %d partitions', (partitions) => {
  let server: RedisServer;
  let web: App;
  const workers: WorkerProcess[] = [];
  const startWorker = async (environment: Record<string, string> = {}) => {
    const worker = await WorkerProcess.start({ REDIS_URL: server.url, PARTITIONS: String(partitions), ...environment });
    workers.push(worker);
    return worker;
  };

  beforeAll(async () => {
    server = await RedisServer.start();
    web = await App.start({ redis: { url: server.url, partitions }, handlers: false });
  });
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    await web.stop();
    await server.stop();
  });

  async function endSession(): Promise<string> {
    const agent = web.agent();
    const { id } = (await agent.post('/set/cart', { value: ['apple'] })).json() as { id: string };
    await agent.post('/logout');
    return id;
  }

  it('an event whose process is killed while it handles it is handled by another one, and delays no other', async () => {
    const doomed = await startWorker({ HANG: '1' });
    const id = await endSession();
    await doomed.saysLine(new RegExp(`^handling deleted:${id}`));
    const next = await startWorker();
    await doomed.end('SIGKILL');
    const killed = performance.now();
    const others = [await endSession(), await endSession(), await endSession()];
    for (const other of others) await next.saysLine(new RegExp(`^handled deleted:${other}$`));
    const othersTook = performance.now() - killed;
    await next.saysLine(new RegExp(`^handled deleted:${id}$`));
    const took = performance.now() - killed;
    // The lease of the workers, and how often they look for what was abandoned.
    const [lease, poll] = [1000, 1000];
    process.stdout.write(
      `Killed while it handled an event: handled by another process ${Math.round(took)} ms later (lease ${lease} ms, ` +
        `poll ${poll} ms), three events of that time ${Math.round(othersTook)} ms after the kill\n`,
    );
    expect(took).toBeLessThan(10 * (lease + poll));
    expect(next.lines).toContain(`handling deleted:${id} ["apple"]`);
    expect(next.lines.filter((line) => line === `handled deleted:${id}`)).toHaveLength(1);
    await next.end();
  });

  it('an event that is recorded while no process is there is delivered after the start', async () => {
    const id = await endSession();
    const next = await startWorker();
    await next.saysLine(new RegExp(`^handled deleted:${id}$`));
    expect(next.lines.filter((line) => line.startsWith('handled'))).toHaveLength(1);
  });
});
