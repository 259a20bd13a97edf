import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

// What a shell, Docker Compose or an old manual may set.
it.each(['', 'GMT-3', 'GMT+8', 'UTC+8', 'Foo/Bar', ':/etc/localtime', 'CST', 'Asia/Kathmandu'])(
  'an application starts and cleans up with TZ=%s',
  async (zone) => {
    await client.flushall();
    const machine = { TZ: zone, LANG: 'C', LC_ALL: 'tr_TR.UTF-8' };
    const worker = await WorkerProcess.start({ REDIS_URL: server.url, CRON: '* * * * * *', ...machine });
    await eventually(async () => expect(await client.exists('nest:session:cleanup')).toBe(1), { timeout: 30_000 });
    await worker.end();
    expect(worker.lines).toEqual(['ready']);
  },
);
