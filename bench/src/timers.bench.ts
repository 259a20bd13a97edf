import { execFileSync } from 'node:child_process';
import { BeanstalkdSessionTimer } from '@nest-session/redis/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/redis/bullmq';
import type { SessionTimer } from '@nest-session/redis';
import { generateSessionKey } from '@nest-session/core/internal';
import { BeanstalkdServer } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { type ExpiryLag, expiryLag } from './expiry.lag.js';
import { isQuick } from './results.js';
import { quantile } from './rounds.js';

// npm run bench -- timers: how late each timer reports an end, and what a scheduled session costs it in memory.
const SESSIONS = isQuick ? 200 : 1000;
const SCHEDULED = 20_000;
const HOUR = 3_600_000;
// Nothing but the timer notices that time is up.
const ALONE = { notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } } as const;

interface Measured extends ExpiryLag {
  /** Bytes of a session that waits. */
  readonly bytes: number;
}

async function beanstalkd(): Promise<Measured> {
  const server = await BeanstalkdServer.start();
  const timer = () => new BeanstalkdSessionTimer({ host: '127.0.0.1', port: server.port });
  const residentSize = async () => 1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', `${server.pid}`]).toString());
  try {
    const lag = await expiryLag({ ...ALONE, expirations: timer() }, SESSIONS);
    return { ...lag, bytes: await bytesOf(timer(), residentSize) };
  } finally {
    await server.kill();
  }
}

async function bullMq(): Promise<Measured> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const timer = () => new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: server.port } });
  const usedMemory = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  try {
    const lag = await expiryLag({ ...ALONE, expirations: timer() }, SESSIONS);
    return { ...lag, bytes: await bytesOf(timer(), usedMemory) };
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

async function bytesOf(timer: SessionTimer, used: () => Promise<number>): Promise<number> {
  await timer.start(async () => undefined);
  try {
    const before = await used();
    for (let i = 0; i < SCHEDULED; i += 100) {
      await Promise.all(Array.from({ length: 100 }, () => timer.schedule(generateSessionKey().id, HOUR)));
    }
    return ((await used()) - before) / SCHEDULED;
  } finally {
    await timer.stop();
  }
}

const rows = {
  'key events': { ...(await expiryLag({ notifications: 'auto' }, SESSIONS)), bytes: 0 },
  beanstalkd: await beanstalkd(),
  BullMQ: await bullMq(),
};
for (const [name, { lags, redisTime, bytes }] of Object.entries(rows)) {
  const [median, most, worst] = [0.5, 0.99, 1].map((share) => Math.round(quantile([...lags], share)));
  console.log(
    `${name}: p50 ${median} ms, p99 ${most} ms, last ${worst} ms; Redis of the sessions ${redisTime.toFixed(0)} µs, ` +
      `timer ${bytes.toFixed(0)} bytes, each per session`,
  );
}
