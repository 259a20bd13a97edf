import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { defineScripts } from '../../src/scripts/define-scripts.js';

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

it('a script gets texts, numbers and bytes as they are', async () => {
  const run = defineScripts(client, { store: "return redis.call('RPUSH', KEYS[1], unpack(ARGV))" });
  const bytes = Buffer.from([0, 255, 13, 10, 0xac]);
  const args = ['', 'Größe ✓', 'a\r\nb', 1.5, -1, bytes, Buffer.alloc(0), 'end'];
  expect(await run('store', ['values'], args)).toBe(args.length);
  const sent = args.map((each) => (Buffer.isBuffer(each) ? each : Buffer.from(String(each))));
  expect(await client.lrangeBuffer('values', 0, -1)).toEqual(sent);
});

it('a script that Redis has forgotten runs nevertheless, once', async () => {
  const run = defineScripts(client, { count: "return redis.call('INCR', KEYS[1])" });
  const count = () => run('count', ['count']);
  expect(await count()).toBe(1);
  await client.script('FLUSH');
  expect(await Promise.all([count(), count()])).toEqual([2, 3]);
  await client.config('RESETSTAT');
  expect(await count()).toBe(4);
  expect(await client.info('commandstats')).not.toContain('cmdstat_eval:');
});
