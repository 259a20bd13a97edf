import { SessionRepository } from '@nest-session/core';
import { DeadlineModule, Deadlines } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { AdminApp, closeApps, PATH } from '../support/admin.app.js';
import { paymentDue } from '../support/failing.js';

LeakGuard.install();

const MANY = 10_000;

let redis: RedisServer;
let app: AdminApp;
let admin: HttpAgent;

beforeAll(async () => {
  redis = await RedisServer.start();
  app = await AdminApp.start({
    store: [RedisSessionModule.forRoot({ url: redis.url })],
    imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: redis.url })],
  });
  admin = await app.admin();
}, 120_000);

afterAll(async () => {
  await closeApps();
  await redis?.stop();
});

async function inBatches(act: (index: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < MANY; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, i) => act(from + i)));
  }
}

async function timed<T>(what: string, get: () => Promise<T>): Promise<T> {
  const before = performance.now();
  const result = await get();
  process.stdout.write(`${what}: ${Math.round(performance.now() - before)} ms\n`);
  return result;
}

it('lists 10,000 sessions of a user page by page, counts them, and ends them all', async () => {
  const repository = app.nest.get(SessionRepository, { strict: false });
  await inBatches(async () => {
    const session = repository.createSession();
    session.signIn('bob');
    session.setAttribute('cart', 'x'.repeat(500));
    await session.save();
  });
  const get = async (path: string) => (await admin.get(PATH + path)).json<any>();
  const first = await timed('first page of 50', () => get('/sessions?username=bob'));
  expect([first.sessions.length, first.total, first.next]).toEqual([50, MANY, 50]);
  const last = await timed('last page of 50', () => get(`/sessions?username=bob&offset=${MANY - 50}`));
  expect([last.sessions.length, last.next]).toEqual([50, null]);
  const overview = await timed('overview', () => get('/overview'));
  expect(overview.sessions.store.count).toBe(MANY + 1);
  const ended = await timed('end all', () => admin.request('DELETE', `${PATH}/sessions?username=bob`));
  expect(ended.json()).toEqual({ ended: MANY });
});

it('lists 10,000 deadlines page by page, each of them once', async () => {
  const deadlines = app.nest.get(Deadlines, { strict: false });
  await inBatches((i) => deadlines.schedule(paymentDue, `order-${i}`, { in: '1h', data: { total: 'x' } }));
  const keys: string[] = [];
  let query = '';
  await timed('10,000 deadlines in pages of 200', async () => {
    for (;;) {
      const page: any = (await admin.get(`${PATH}/deadlines?name=order.payment-due&limit=200${query}`)).json();
      keys.push(...page.deadlines.map(({ key }: { key: string }) => key));
      if (!page.next) return;
      query = `&afterKey=${encodeURIComponent(page.next.key)}&afterDueAt=${page.next.dueAt}`;
    }
  });
  expect([keys.length, new Set(keys).size]).toEqual([MANY, MANY]);
});
