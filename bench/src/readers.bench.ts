import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { generateSessionKey } from '@nest-session/core/internal';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { redisUsage } from './redis.usage.js';
import { isQuick } from './results.js';
import { inFlight, startStore } from './store.context.js';
import { number, table } from './table.js';

// What it costs Redis that many instances wait for the same events, of which one gets each.

const INSTANCES = [1, 4, 10];
const SESSIONS = isQuick ? 600 : 3000;
/** Deletions a second: slowly enough that each event is read by itself. */
const RATE = 300;
const REST = isQuick ? 2000 : 10_000;

let handled = 0;

@Injectable()
class Handlers {
  @OnSessionEvent(SessionDeletedEvent)
  handle(): void {
    handled++;
  }
}

/** Microseconds of Redis for a deletion with its delivery, above those of instances at rest. */
async function costOf(partitions: number, instances: number): Promise<number> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const options = { url: server.url, partitions, notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } } as const;
  const readers = await Promise.all(Array.from({ length: instances }, () => startStore(options, [Handlers])));
  const { store, stop } = await startStore(options);
  const ids = Array.from({ length: SESSIONS }, () => generateSessionKey().id);
  const times = { presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 };
  const attributes = new Map([['cart', '"apple"']]);
  await inFlight(ids, 16, (id) => store.write({ kind: 'create', id, ...times, attributes, indexes: new Map() }));
  await sleep(3000);
  const spent = async () => (await redisUsage(redis)).processorTime;
  const before = await spent();
  await sleep(REST);
  const atRest = ((await spent()) - before) / REST;
  handled = 0;
  const [from, begun] = [await spent(), performance.now()];
  for (const [n, id] of ids.entries()) {
    void store.write({ kind: 'delete', id });
    await sleep(Math.max(0, begun + (n * 1000) / RATE - performance.now()));
  }
  while (handled < SESSIONS) await sleep(10);
  const cost = (await spent()) - from - atRest * (performance.now() - begun);
  await Promise.all([stop(), ...readers.map((reader) => reader.stop())]);
  redis.disconnect();
  await server.stop();
  return cost / SESSIONS;
}

const rows: string[][] = [];
for (const partitions of [1, 64]) {
  const costs: string[] = [];
  for (const instances of INSTANCES) costs.push(number(await costOf(partitions, instances)));
  rows.push([`${partitions}`, ...costs]);
}
console.log(table(['partitions', ...INSTANCES.map((count) => `${count} instances, Redis µs`)], rows));
