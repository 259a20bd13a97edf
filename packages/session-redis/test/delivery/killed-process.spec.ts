import { LeakGuard, RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

let server: RedisServer;
let web: App;
const workers: WorkerProcess[] = [];
const startWorker = async (environment: Record<string, string> = {}) => {
  const worker = await WorkerProcess.start({ REDIS_URL: server.url, ...environment });
  workers.push(worker);
  return worker;
};

beforeAll(async () => {
  server = await RedisServer.start();
  web = await App.start({ redis: { url: server.url }, handlers: false });
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

it('an event whose process is killed while it handles it is delivered after the restart', async () => {
  const doomed = await startWorker({ HANG: '1' });
  const id = await endSession();
  await doomed.saysLine(new RegExp(`^handling deleted:${id}`));
  await doomed.end('SIGKILL');
  const next = await startWorker();
  await next.saysLine(new RegExp(`^handling deleted:${id} \\["apple"\\]$`));
  await next.saysLine(new RegExp(`^handled deleted:${id}$`));
  await next.end();
});

it('an event that is recorded while no process is there is delivered after the start', async () => {
  const id = await endSession();
  const next = await startWorker();
  await next.saysLine(new RegExp(`^handled deleted:${id}$`));
  expect(next.lines.filter((line) => line.startsWith('handled'))).toHaveLength(1);
});
