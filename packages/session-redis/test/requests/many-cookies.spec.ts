import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

/** The cookies of visitors whose sessions have a `page` of this text. */
async function visitors(app: App, count: number, text: string): Promise<string[]> {
  const cookies: string[] = [];
  for (let i = 0; i < count; i++) {
    const visitor = app.agent();
    await visitor.post('/set/page', { value: text });
    cookies.push(`SESSION=${visitor.cookie('SESSION')}`);
  }
  return cookies;
}

it.each([1, 4])('a request with 64 live sessions reads one of them from Redis, %i partition(s)', async (partitions) => {
  const options = { url: redis.url, namespace: `n${partitions}`, partitions, notifications: 'off' } as const;
  const app = await App.start({ redis: options, handlers: false });
  const client = new Redis(redis.url);
  const size = 50_000;
  try {
    const cookies = await visitors(app, 64, 'x'.repeat(size));
    const user = app.agent();
    await user.post('/login/ann');
    await user.post('/set/page', { value: 'y'.repeat(size) });
    const own = `SESSION=${user.cookie('SESSION')}`;
    for (const [given, page] of [
      [cookies, 'x'],
      [[...cookies.slice(1), own], 'y'],
      [[...cookies.slice(0, 9), own], 'y'],
    ] as const) {
      const before = await bytesSent(client);
      const read = await new HttpAgent(app.url, { headers: { cookie: given.join('; ') } }).get('/read');
      expect(read.json<{ attributes: { page: string } }>().attributes.page).toBe(page.repeat(size));
      expect((await bytesSent(client)) - before).toBeLessThan(2 * size);
    }
  } finally {
    client.disconnect();
    await app.stop();
  }
});

/** How many bytes Redis has sent so far. */
async function bytesSent(client: Redis): Promise<number> {
  return Number(/total_net_output_bytes:(\d+)/.exec(await client.info('stats'))![1]);
}
