import { readFile } from 'node:fs/promises';
import { Controller, Post } from '@nestjs/common';
import { IndexedSessionRepository, Session } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SpringKeys } from '../../src/keys/spring-keys.js';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../support/spring.app.js';
import { KEYS } from '../../../session-redis/test/support/documented.keys.js';
import { SpringWriter } from '../support/spring-writer.js';

LeakGuard.install();

const [MINUTE, DAY] = [60_000, 86_400_000];
const BESIDE = 'spring:session:nest:';
const ID = '[\\w-]{36,43}';

/** Of the table of the documentation. */
const OWN = {
  'spring:session:nest:ends': 'zset',
  'spring:session:nest:awaited': 'zset',
  'spring:session:nest:scanning': 'string',
  'spring:session:nest:sessions:signed-in:<id>': 'string',
  'spring:session:nest:sessions:forwarded:<previous id>': 'string',
  'spring:session:nest:sessions:ended:<id>': 'string',
};
/** Those of every namespace that hold no session. */
const COMMON = Object.keys(KEYS)
  .filter((key) => /^nest:session:(events|meta|instances|cleanup)/.test(key))
  .map((key) => key.replace('nest:session:', BESIDE));

@Controller()
class SignInController {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }
}

let server: RedisServer;
let client: Redis;
let spring: SpringWriter;
let app: App;
/** What was written beside the keys of Spring. */
const written = new Set<string>();
beforeAll(async () => {
  server = await RedisServer.start({ args: ['--notify-keyspace-events', 'KEA'] });
  client = new Redis(server.url);
  spring = new SpringWriter(client);
  const witness = new Redis(server.url);
  witness.on('pmessage', (_, channel: string) => written.add(channel.replace('__keyspace@0__:', '')));
  await witness.psubscribe(`__keyspace@0__:${BESIDE}*`);
  app = await startWithSpring(
    { url: server.url, mode: 'shared', cleanup: { cron: '* * * * * *' } },
    { controllers: [SignInController] },
  );
  await live();
  await eventually(() => expect(written).toContain(`${BESIDE}cleanup`));
  witness.disconnect();
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

async function live(): Promise<void> {
  const agent = app.agent();
  const before = (await agent.post('/set/color', { value: 'red' })).json<{ id: string }>().id;
  await agent.post('/sign-in');
  const [session] = await app.nest.get(IndexedSessionRepository, { strict: false }).findByPrincipalName('ann');
  expect(await client.get(`${BESIDE}sessions:forwarded:${before}`)).toContain(session!.id);
  expect(await ttl(`${BESIDE}sessions:forwarded:${before}`)).toBe(MINUTE);
  expect(await ttl(`${BESIDE}sessions:signed-in:${session!.id}`)).toBe(30 * MINUTE + DAY);
  await agent.post('/logout');
  expect(await ttl(`${BESIDE}sessions:ended:${session!.id}`)).toBe(40 * MINUTE);
  expect(await client.exists(`${BESIDE}sessions:signed-in:${session!.id}`)).toBe(0);
  const unheard = await spring.create({}, 1800, { tells: false });
  await app.nest.get(IndexedSessionRepository, { strict: false }).deleteById(unheard);
  expect(await client.zscore(`${BESIDE}awaited`, unheard)).not.toBeNull();
  await spring.invalidate(await spring.changeId(await spring.create({ color: 'red' })));
  await eventually(() => expect(app.events.all().filter(({ type }) => type === 'deleted')).toHaveLength(3));
  expect(await client.exists(`${BESIDE}ends`)).toBe(0);
}

/** Rounded up to minutes. */
async function ttl(key: string): Promise<number> {
  return Math.ceil((await client.pttl(key)) / MINUTE) * MINUTE;
}

const patternOf = (key: string) =>
  new RegExp(`^${key.replaceAll(/<(previous )?id>/g, ID).replaceAll(/<\w+>/g, '.+')}$`);

it('the keys of this test equal the table of the data model', async () => {
  const text = await readFile(new URL('../../../../docs/evidence/redis-data-model.md', import.meta.url), 'utf8');
  const [, section = ''] = text.split(/^## Sessions of Spring$/m);
  const rows = [...section.split(/^#/m)[0]!.matchAll(/^\| `([^`]+)` +\| ([A-Z]+) /gm)];
  expect(Object.fromEntries(rows.map(([, key, type]) => [key, type!.toLowerCase()]))).toEqual(OWN);
});

it('NestJS writes each of these keys and those of every namespace, and no other', () => {
  const patterns = Object.keys(OWN).map(patternOf);
  for (const pattern of patterns) expect([...written].some((key) => pattern.test(key))).toBe(true);
  const all = [...patterns, ...COMMON.map(patternOf)];
  expect([...written].filter((key) => !all.some((pattern) => pattern.test(key)))).toEqual([]);
});

it('no key of another namespace is one of Spring, whose name is as long', () => {
  const keys = new SpringKeys('spring:session');
  expect(keys.read('spring:session:sessions:expires:an-id')).toEqual({ kind: 'shadow' });
  expect(keys.read('winter:session:sessions:expires:an-id')).toBeUndefined();
});
