import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SpringScripts } from '../../src/scripts/spring/spring.scripts.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

// As Java writes them: no text.
const member = (name: string) => Buffer.concat([Buffer.of(0xac, 0xed, 0xff), Buffer.from(name)]);

it('lost members of an index are those whose session is gone, and only these are removed', async () => {
  await client.sadd('index', ['gone', 'there', 'other'].map(member));
  await client.set('session-there', '');
  const named = ['gone', 'there', 'no member'].map((name) => ({ stored: member(name), session: `session-${name}` }));
  await new SpringScripts(client).removeLost('index', named);
  const left = await client.smembersBuffer('index');
  expect(left.map(String).sort()).toEqual(['other', 'there'].map((name) => String(member(name))));
});
