// What a user relies on, checked on the adapter that ADAPTER names. ENTRY_POINTS: everything that can be imported from the
// packages. Prints TAP; ends by itself if nothing is left open.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { before, test } from 'node:test';
import type { INestApplication } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import {
  eventually,
  HttpAgent,
  type HttpResponse,
  RedisServer,
  TestClock,
  SessionEventRecorder,
  signIn,
} from '@nest-session/testing';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Redis } from 'ioredis';
import './admin.js';
import './graphql.js';
import './sockets.js';
import './telemetry.js';
import { type Adapter, type Basket, Heard, openShop, testShop } from './shop.js';

const adapter = process.env['ADAPTER'] as Adapter;
const entryPoints = process.env['ENTRY_POINTS']!.split(',');
const leaks = new LeakGuard();

let redis: RedisServer;
let admin: Redis;
let books: INestApplication;
let music: INestApplication;

before(async () => {
  leaks.start();
  redis = await RedisServer.start();
  admin = new Redis(redis.url);
  books = await openShop('books', adapter, redis.url);
  music = await openShop('music', adapter, redis.url);
});

test('a request that stores nothing costs no cookie', async () => {
  const customer = await enter(books);
  assert.deepEqual((await customer.get('/plain')).setCookies, []);
  assert.deepEqual((await customer.get('/basket')).setCookies, []);
});

test('the first attribute sets the cookie, the next one does not', async () => {
  const customer = await enter(books);
  const first = await post(customer, '/basket', { item: 'apple' });
  assert.match(first.setCookies.join(), /^books=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
  assert.deepEqual((await post(customer, '/basket', { item: 'pear' })).setCookies, []);
});

test('the next request reads what was stored', async () => {
  const customer = await enter(books);
  await post(customer, '/basket', { item: 'apple' });
  assert.deepEqual((await basketOf(customer)).items, ['apple']);
  await post(customer, '/basket/by-hand', { item: 'pear' });
  assert.deepEqual((await basketOf(customer)).items, ['apple', 'pear']);
});

test('a login ends the old token and keeps the data', async () => {
  const customer = await enter(books);
  await post(customer, '/basket', { item: 'apple' });
  const thief = customer.fork();
  const before = await basketOf(customer);
  assert.equal((await post(customer, '/login', { user: 'ann' })).setCookies.length, 1);
  const after = await basketOf(customer);
  assert.deepEqual([after.user, after.items, after.isNew], ['ann', ['apple'], false]);
  assert.notEqual(after.id, before.id);
  assert.equal((await basketOf(thief)).isNew, true);
});

test('a logout expires the cookie and ends the session', async () => {
  const customer = await enter(books);
  await post(customer, '/basket', { item: 'apple' });
  const other = customer.fork();
  const response = await post(customer, '/logout');
  assert.equal(response.setCookies.length, 1);
  assert.equal(customer.cookie('books'), undefined);
  assert.equal((await basketOf(other)).isNew, true);
});

test('a save that fails is a 503 without a cookie', async () => {
  await admin.config('SET', 'maxmemory', '1');
  try {
    for (const path of ['/basket', '/basket/by-hand']) {
      const response = await (await enter(books)).post(path, { item: 'apple' });
      assert.deepEqual([path, response.status, response.setCookies], [path, 503, []]);
      assert.deepEqual(response.json(), {
        statusCode: 503,
        message: 'Session store unavailable',
        error: 'Service Unavailable',
        reason: 'store-unavailable',
      });
    }
  } finally {
    await admin.config('SET', 'maxmemory', '0');
  }
});

test('a route that does without its session does so before a guard of the root module asks for it', async () => {
  const customer = await enter(books);
  await post(customer, '/login', { user: 'ann' });
  redis.freeze();
  try {
    assert.deepEqual((await customer.get('/welcome')).json(), { user: 'nobody' });
    assert.equal((await customer.get('/plain')).status, 503);
  } finally {
    redis.thaw();
  }
  await eventually(async () => assert.deepEqual((await customer.get('/welcome')).json(), { user: 'ann' }));
});

test('@nestjs/terminus reports the sessions as up, degraded and down', async () => {
  await post(await enter(books), '/basket', { item: 'apple' });
  assert.deepEqual(await healthOf(books), [200, 'ok', 'up', undefined, undefined]);
  await admin.xgroup('CREATE', 'books:events', 'nobody', '0');
  const reasons = ['A group is late'];
  const { version } = createRequire(`${process.cwd()}/`)('@nestjs/terminus/package.json') as { version: string };
  const isOf11 = version.startsWith('11.');
  const degraded = isOf11 ? [200, 'ok', 'up', true, reasons] : [200, 'degraded', 'degraded', undefined, reasons];
  assert.deepEqual(await healthOf(books, '?late=1ms'), degraded);
  await admin.xgroup('DESTROY', 'books:events', 'nobody');
  redis.freeze();
  try {
    const down = [503, 'error', 'down', undefined, ['Redis did not reply within 5000 ms']];
    assert.deepEqual(await healthOf(books), down);
  } finally {
    redis.thaw();
  }
  await eventually(async () => assert.equal((await healthOf(books))[0], 200));
});

test('an expired session reaches @OnSessionEvent and @OnEvent, with its data', async () => {
  const customer = await enter(books);
  await post(customer, '/basket', { item: 'apple' });
  const { id } = await basketOf(customer);
  await post(customer, '/leave');
  for (const heard of [books.get(Heard).bySession, books.get(Heard).byEmitter]) {
    const { session, dataLost } = await heard.next('expired', id);
    assert.deepEqual([session.getAttribute('items'), dataLost], [['apple'], false]);
  }
});

test('two applications on one Redis have a session each and see nothing of the other', async () => {
  const [reader, listener] = [await enter(books), await enter(music)];
  await post(reader, '/basket', { item: 'apple' });
  await post(listener, '/basket', { item: 'pear' });
  const cookie = `books=${reader.cookie('books')}; music=${listener.cookie('music')}`;
  const swapped = `books=${listener.cookie('music')}; music=${reader.cookie('books')}`;
  assert.deepEqual((await basketOf(await enter(books), cookie)).items, ['apple']);
  assert.deepEqual((await basketOf(await enter(music), cookie)).items, ['pear']);
  for (const shop of [books, music]) assert.equal((await basketOf(await enter(shop), swapped)).isNew, true);
});

test('import and require() give the same copy of the packages', async () => {
  const require = createRequire(`${process.cwd()}/`);
  for (const name of entryPoints) {
    const [imported, required] = [await import(name), require(name)];
    assert.ok(Object.keys(imported).length > 0);
    for (const key of Object.keys(imported)) assert.equal(required[key], imported[key], `${key} of ${name}`);
  }
});

test('@nestjs/schedule lists the cleanup job', () => {
  assert.equal(books.get(SchedulerRegistry).doesExist('cron', 'session-cleanup'), true);
});

test('a test of the application does without Redis, and need not wait for an expiry', async () => {
  const shop = await testShop(adapter);
  const ann = await signIn(shop, { principalName: 'ann', attributes: { items: ['apple'] } });
  const { user, items } = await basketOf(ann);
  assert.deepEqual([user, items], ['ann', ['apple']]);
  await shop.get(TestClock).advance('31m');
  assert.equal((await basketOf(ann)).isNew, true);
  assert.equal(shop.get(Heard).bySession.count('expired'), 1);
  assert.equal(shop.get(SessionEventRecorder).count('expired'), 1);
  assert.deepEqual(await healthOf(shop), [200, 'ok', 'up', undefined, undefined]);
  await shop.close();
});

test('all of it closes and leaves nothing open', async () => {
  await Promise.all([books.close(), music.close()]);
  // As tests do: it is closed while some of its connections are being made.
  for (let i = 0; i < 5; i++) {
    const brief = await openShop('brief', adapter, redis.url);
    await (await enter(brief)).get('/plain');
    await brief.close();
  }
  await admin.quit();
  await redis.stop();
  // What is closed in the wrong way is closed by ioredis after two seconds.
  await leaks.check({ grace: 1_500 });
  leaks.stop();
});

async function enter(shop: INestApplication): Promise<HttpAgent> {
  return new HttpAgent(await shop.getUrl());
}

async function post(customer: HttpAgent, path: string, body?: object): Promise<HttpResponse> {
  const response = await customer.post(path, body);
  assert.equal(response.status, 201, response.text);
  return response;
}

async function basketOf(customer: HttpAgent, cookie?: string): Promise<Basket> {
  return (await customer.get('/basket', cookie === undefined ? {} : { headers: { cookie } })).json();
}

/** Asked without a session, which the guard would load. */
async function healthOf(shop: INestApplication, query = ''): Promise<unknown[]> {
  const response = await (await enter(shop)).get(`/health${query}`);
  const { status, details } = response.json<{ status: string; details: { sessions: Record<string, unknown> } }>();
  const { sessions } = details;
  return [response.status, status, sessions['status'], sessions['degraded'], sessions['reasons']];
}
