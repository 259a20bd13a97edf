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

const WHOLE = { creationTime: 1, lastAccessedTime: 2, maxInactiveInterval: 3 };
// As Java writes them: no text.
const member = (name: string) => Buffer.concat([Buffer.of(0xac, 0xed, 0xff), Buffer.from(name)]);

describe.each(['set', 'zset'])('lost members of a %s', (type) => {
  const add = (...names: string[]) =>
    type === 'set'
      ? client.sadd('place', names.map(member))
      : client.zadd('place', ...names.flatMap((name) => [1, member(name)]));
  const left = () => (type === 'set' ? client.smembersBuffer('place') : client.zrangeBuffer('place', '0', '-1'));
  const named = (...names: string[]) => names.map((name) => ({ stored: member(name), key: `key-${name}` }));

  it('are those whose key is gone, and only these are removed', async () => {
    await add('gone', 'there', 'other');
    await client.set('key-there', '');
    const all = named('gone', 'there', 'no member');
    for (const mends of [false, true]) {
      const found = await new SpringScripts(client, mends).lostMembers('place', all);
      expect(found).toEqual(named('gone'));
      expect(await left()).toHaveLength(mends ? 2 : 3);
    }
    expect((await left()).map((each) => each.toString('latin1')).sort()).toEqual(
      ['other', 'there'].map((name) => member(name).toString('latin1')),
    );
  });
});

it('a list in the place of a set has no members', async () => {
  await client.rpush('place', 'a');
  expect(await new SpringScripts(client, true).lostMembers('place', [{ stored: Buffer.from('a'), key: 'b' }])).toEqual(
    [],
  );
});

it('buckets that stay are those without a time to live, and get one', async () => {
  await client.sadd('stays', 'a');
  await client.sadd('goes', 'a');
  await client.expire('goes', 1000);
  const all = ['goes', 'none', 'stays'].map((key) => ({ key }));
  expect(await new SpringScripts(client, false).lastingBuckets(all)).toEqual([{ key: 'stays' }]);
  expect(await client.pttl('stays')).toBe(-1);
  expect(await new SpringScripts(client, true).lastingBuckets(all)).toEqual([{ key: 'stays' }]);
  const [stays, goes] = [await client.pttl('stays'), await client.pttl('goes')];
  expect([stays > 290_000 && stays <= 300_000, goes > 990_000]).toEqual([true, true]);
});

it('incomplete sessions are those without one of their times, and are removed with their shadow keys', async () => {
  const all = ['whole', 'none', 'stray', ...Object.keys(WHOLE)].map((id) => ({ session: id, shadow: `shadow-${id}` }));
  for (const { shadow } of all) await client.set(shadow, '');
  await client.hset('whole', WHOLE);
  await client.set('stray', 'x');
  for (const missing of Object.keys(WHOLE)) {
    await client.hset(missing, WHOLE);
    await client.hset(missing, 'sessionAttr:a', '"x"');
    await client.hdel(missing, missing);
  }
  expect(await new SpringScripts(client, false).incompleteSessions(all)).toEqual(all.slice(3));
  expect(await client.dbsize()).toBe(11);
  expect(await new SpringScripts(client, true).incompleteSessions(all)).toEqual(all.slice(3));
  expect((await client.keys('*')).sort()).toEqual(['shadow-none', 'shadow-stray', 'shadow-whole', 'stray', 'whole']);
});
