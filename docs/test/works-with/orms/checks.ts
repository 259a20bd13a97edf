// What the ORM in orders.module.js and sessions do beside each other. Prints TAP; ends by itself if nothing is left open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { INestApplication } from '@nestjs/common';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Ends, openShop, type Ordered } from './shop.js';

let redis: RedisServer;
let shop: INestApplication;

before(async () => {
  redis = await RedisServer.start();
  shop = await openShop(redis.url);
});

after(async () => {
  await shop.close();
  await redis.stop();
});

test('a request writes a row and an attribute, and the next one reads both', async () => {
  const visitor = await enter();
  await order(visitor, 'apple');
  const { order: id, item } = await orderOf(visitor);
  assert.deepEqual([typeof id, item], ['number', 'apple']);
});

test('visitors at the same time have the rows of their sessions', async () => {
  const items = Array.from({ length: 20 }, (_, i) => `item ${i}`);
  const visitors = await Promise.all(items.map(enter));
  await Promise.all(visitors.map((visitor, i) => order(visitor, items[i]!)));
  assert.deepEqual(
    (await Promise.all(visitors.map(orderOf))).map(({ item }) => item),
    items,
  );
});

test('a handler of session events writes a row', async () => {
  const visitor = await enter();
  await order(visitor, 'pear');
  const { session } = await orderOf(visitor);
  assert.equal((await visitor.post('/order/leave')).status, 201);
  await eventually(() => assert.deepEqual(shop.get(Ends).items, [`deleted-${session}`]));
});

async function enter(): Promise<HttpAgent> {
  return new HttpAgent(await shop.getUrl());
}

async function order(visitor: HttpAgent, item: string): Promise<void> {
  const response = await visitor.post('/order', { item });
  assert.equal(response.status, 201, response.text);
}

async function orderOf(visitor: HttpAgent): Promise<Ordered> {
  return (await visitor.get('/order')).json();
}
