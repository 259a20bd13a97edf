// Spring Boot with the repository and the serializer of the environment, and NestJS that reads its sessions. Prints TAP; ends
// by itself if nothing is left open.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import {
  SpringApplication,
  type SpringApplicationOptions,
  type SpringVisitor,
  StartedParts,
} from '@nest-session/test-infrastructure/spring';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { atAccount, PRINCIPAL, startAccount } from './account.js';

const REPOSITORY = process.env['REPOSITORY'] as SpringApplicationOptions['repository'];
const EXPIRATIONS = process.env['EXPIRATIONS'] as SpringApplicationOptions['expirations'];
const SERIALIZER = process.env['SERIALIZER'] as SpringApplicationOptions['serializer'];
const ADAPTERS = ['express', 'fastify'] as const;

/** What the command calls them. */
const SHOWN_SERIALIZERS = { jdk: 'java', plain: 'plain-json', typed: 'typed-json', security: 'security-json' };

/** The modules of Spring Security let Jackson write dates and times as numbers, and Java alone knows of which class they are. */
const TIMES_AS_NUMBERS = {
  date: 1_404_360_000_123,
  map: { day: [2024, 1, 2], k: 'v' },
  times: { at: 1_704_164_645.678, for: 'PT1M30S' },
};

/** What `nest-session spring --json` prints. */
type SpringReport = Record<'repository' | 'expirations' | 'serializer' | 'unreadableAttributes' | 'findings', unknown>;

const parts = new StartedParts();
let redis: RedisServer;
let client: Redis;
let spring: SpringApplication;
let accounts: INestApplication[];

before(async () => {
  redis = parts.add(await RedisServer.start(), (started) => started.stop());
  client = parts.add(new Redis(redis.url), (started) => started.disconnect());
  const how = { repository: REPOSITORY, serializer: SERIALIZER, expirations: EXPIRATIONS };
  const where = { namespace: 'spring:session', redisUrl: redis.url };
  spring = parts.add(await SpringApplication.start({ ...how, ...where }), (started) => started.stop());
  accounts = [];
  for (const adapter of ADAPTERS) {
    accounts.push(parts.add(await startAccount(adapter, redis.url), (started) => started.close()));
  }
});

beforeEach(() => client.flushall());

after(() => parts.stop());

test('who signs in to Spring is signed in to NestJS, with the same name and authorities', async () => {
  for (const name of ['ann', 'bob']) {
    const visitor = await signedIn(name);
    const known = (await visitor.session())!.signedInAs!;
    assert.equal(known.name, name);
    assert.equal(known.authorities.includes('ROLE_ADMIN'), name === 'ann');
    for (const account of await inNest(visitor)) {
      const response = await account.get('/user');
      assert.deepEqual([response.status, response.json()], [200, known]);
    }
  }
});

test('the session has the attributes that Java has', async () => {
  const visitor = await signedIn('ann');
  await visitor.setKinds();
  await visitor.change({ attributes: { cart: [{ item: 'tea', count: 2 }, []], seen: false, note: '' } });
  const { [PRINCIPAL]: _user, ...attributes } = (await visitor.session())!.attributes;
  assert.ok(Object.keys(attributes).length > 15);
  const expected = { ...attributes, ...(SERIALIZER === 'security' && TIMES_AS_NUMBERS) };
  for (const account of await inNest(visitor)) assert.deepEqual((await account.get('/attributes')).json(), expected);
});

test('nobody is signed in to a session of a visitor who is not signed in to Spring', async () => {
  const visitor = spring.visitor();
  await visitor.change({ attributes: { cart: ['tea'] } });
  for (const account of await inNest(visitor)) {
    assert.equal((await account.get('/user')).status, 401);
    assert.deepEqual((await account.get('/attributes')).json(), { cart: ['tea'] });
  }
});

test('who signs out of Spring is not signed in to NestJS', async () => {
  const visitor = await signedIn('ann');
  const browsers = await inNest(visitor);
  for (const account of browsers) assert.equal((await account.get('/user')).status, 200);
  await visitor.signOut();
  for (const account of browsers) assert.equal((await account.get('/user')).status, 401);
  assert.equal(await visitor.session(), null);
});

test('a session ends for both when its interval is over', async () => {
  const visitor = await signedIn('ann');
  const browsers = await inNest(visitor);
  await visitor.change({ maxInactiveInterval: 3 });
  for (const account of browsers) assert.equal((await account.get('/user')).status, 200);
  for (const account of browsers) await eventually(async () => (await account.get('/user')).status === 401);
  assert.equal(await visitor.session(), null);
});

test('NestJS changes nothing in the keys of Spring, which goes on with the session', async () => {
  const visitor = await signedIn('ann');
  await visitor.setKinds();
  const { id, attributes, creationTime } = (await visitor.session())!;
  const before = await keysAndValues();
  for (const account of await inNest(visitor)) {
    assert.equal((await account.get('/user')).status, 200);
    assert.equal((await account.get('/attributes')).status, 200);
    assert.deepEqual((await account.get('/sessions')).json(), REPOSITORY === 'indexed' ? [id] : []);
  }
  assert.deepEqual(await keysAndValues(), before);
  await visitor.change({ attributes: { color: 'red' } });
  const session = (await visitor.session())!;
  const left = { id: session.id, attributes: session.attributes, creationTime: session.creationTime };
  assert.deepEqual(left, { id, attributes: { ...attributes, color: 'red' }, creationTime });
  await visitor.signOut();
});

test('the command says which repository and which serializer Spring has', async () => {
  await (await signedIn('ann')).setKinds();
  const args = ['node_modules/.bin/nest-session', 'spring', '--json', '--url', redis.url];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { repository, expirations, serializer, unreadableAttributes, findings } = JSON.parse(stdout) as SpringReport;
  assert.deepEqual([repository, serializer], [REPOSITORY, SHOWN_SERIALIZERS[SERIALIZER]]);
  if (REPOSITORY === 'indexed') assert.equal(expirations, EXPIRATIONS ?? 'buckets');
  assert.deepEqual([unreadableAttributes, findings], [[], []]);
});

test('NestJS starts to share the sessions if they are in the indexed repository, and in JSON', async () => {
  await (await signedIn('ann')).setKinds();
  const start = () => startAccount('express', redis.url, 'shared');
  if (SERIALIZER === 'jdk') await assert.rejects(start, /needs JSON/);
  else if (REPOSITORY === 'simple') await assert.rejects(start, /needs RedisIndexedSessionRepository/);
  else await (await start()).close();
});

async function signedIn(name: string): Promise<SpringVisitor> {
  const visitor = spring.visitor();
  await visitor.change({ attributes: { entered: true } });
  const { id } = (await visitor.session())!;
  await visitor.signIn(name);
  assert.notEqual((await visitor.session())!.id, id);
  return visitor;
}

function inNest({ agent }: SpringVisitor): Promise<HttpAgent[]> {
  return Promise.all(accounts.map((account) => atAccount(account, agent)));
}

async function keysAndValues(): Promise<[key: string, value: Buffer][]> {
  const keys = (await client.keys('*')).toSorted();
  return Promise.all(keys.map(async (key) => [key, await client.dumpBuffer(key)] as [string, Buffer]));
}
