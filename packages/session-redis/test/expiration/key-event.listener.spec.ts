import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { eventually, LeakGuard } from '@nest-session/testing';
import type { Redis } from 'ioredis';
import { KeyEventListener } from '../../src/expiration/key-event.listener.js';
import { enableExpiredEvents } from '../../src/expiration/keyspace-notifications.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();
Logger.overrideLogger(false);

let store: Store;
let subscriber: Redis;
let listener: KeyEventListener;
let catchUps = 0;
const catchUp = async () => void catchUps++;

beforeAll(async () => {
  store = await Store.open();
  subscriber = store.client.duplicate({ lazyConnect: true, autoResubscribe: false, disconnectTimeout: 10 });
  listener = new KeyEventListener(subscriber, store.scripts, store.keys, 100, catchUp);
  listener.start();
  await eventually(() => catchUps === 1);
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await listener.stop();
  subscriber.disconnect();
  await store.close();
});

/** Lets time run out for a key, as Redis sees it. Not within the command itself: that would be a `del`. */
const expire = (key: string) => store.client.pexpire(key, 50);
const touch = (key: string) => eventually(async () => (await store.client.exists(key)) === 0);

it('has the end of a session recorded as soon as Redis announces it, many in one call', async () => {
  const ids = await Promise.all(Array.from({ length: 50 }, () => store.create({ a: '1' })));
  const claims = jest.spyOn(store.scripts, 'claimExpired');
  await Promise.all(ids.map((id) => expire(store.keys.shadow(id))));
  await Promise.all(ids.map((id) => touch(store.keys.shadow(id))));
  for (const id of ids)
    await eventually(async () => expect(await store.eventTypes(id)).toEqual(['created', 'expired']));
  expect(claims.mock.calls.length).toBeLessThan(ids.length);
});

it('takes no notice of the keys of others', async () => {
  const claims = jest.spyOn(store.scripts, 'claimExpired');
  const foreign = ['other:sessions:expires:x', 'nest:session:sessions:x', 'nest:session:sessions:expire', 'x'];
  for (const key of foreign) await store.client.set(key, '', 'PX', 50);
  await Promise.all(foreign.map(touch));
  const own = await store.create({ a: '1' });
  await expire(store.keys.shadow(own));
  await touch(store.keys.shadow(own));
  await eventually(async () => expect(await store.eventTypes(own)).toEqual(['created', 'expired']));
  expect(claims.mock.calls.flatMap(([members]) => members)).toEqual([`expires:${own}`]);
});

it('leaves a session alone that was renewed between its announcement and the claim', async () => {
  const id = await store.create({ a: '1' });
  await store.client.publish('__keyevent@0__:expired', store.keys.shadow(id));
  const marker = await store.create({ a: '1' });
  await expire(store.keys.shadow(marker));
  await touch(store.keys.shadow(marker));
  await eventually(async () => expect(await store.eventTypes(marker)).toEqual(['created', 'expired']));
  expect(await store.isAlive(id)).toBe(true);
  expect(await store.eventTypes(id)).toEqual(['created']);
});

it('subscribes again after the connection was lost, and catches up', async () => {
  catchUps = 0;
  await store.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually(() => catchUps === 1);
  const id = await store.create({ a: '1' });
  await expire(store.keys.shadow(id));
  await touch(store.keys.shadow(id));
  await eventually(async () => expect(await store.eventTypes(id)).toEqual(['created', 'expired']));
});

it.each([
  ['', 'xE', true],
  ['E', 'xE', true],
  ['x', 'xE', true],
  ['K', 'xKE', true],
  ['Ex', 'xE', false],
  ['AKE', 'AKE', false],
  ['AK', 'AKE', true],
])('sets what is missing of notify-keyspace-events %p', async (before, after, changed) => {
  await store.client.config('SET', 'notify-keyspace-events', before);
  expect(await enableExpiredEvents(store.client)).toBe(changed);
  expect(await store.client.config('GET', 'notify-keyspace-events')).toEqual(['notify-keyspace-events', after]);
});
