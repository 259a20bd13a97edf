import { randomBytes } from 'node:crypto';
import { RedisServer } from '@nest-session/testing';
import { generateSessionKey } from '@nest-session/core/internal';
import { Redis } from 'ioredis';
import { memoryReport, WITH_512 } from './memory.report.js';
import { type Comparison, isQuick, writeResults } from './results.js';
import { SpringSessions } from './spring-sessions.js';
import { inFlight, startStore } from './store.context.js';

const SESSIONS = isQuick ? 2000 : 10_000;
const ATTRIBUTES = 8;
// Up to `hash-max-listpack-value` bytes, 64 by default, Redis keeps a field of a hash in its compact form.
const SIZES = [30, 64, 100, 400];

type Layout = (server: RedisServer, redis: Redis, bytes: number) => Promise<Record<string, number>>;

const ours: Layout = async (server, redis, bytes) => {
  const { store, stop } = await startStore({ url: server.url });
  const timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  const figures = await measure(redis, async () => {
    const { id } = generateSessionKey();
    const attributes = new Map(Object.entries(attributesOf(bytes)).map(([name, text]) => [name, JSON.stringify(text)]));
    await store.write({ kind: 'create', id, presentedIds: [], ...timeouts, attributes, indexes: new Map() });
  });
  await stop();
  return figures;
};

const LAYOUTS: Record<string, Layout> = {
  'nest-session': ours,
  [WITH_512]: ours,
  'Spring Session': async (_, redis, bytes) => {
    const sessions = new SpringSessions(redis);
    return measure(redis, () => {
      const session = sessions.create();
      for (const [name, text] of Object.entries(attributesOf(bytes))) sessions.setAttribute(session, name, text);
      return sessions.save(session);
    });
  },
  'connect-redis': async (_, redis, bytes) => {
    return measure(redis, async () => {
      const cookie = { originalMaxAge: null, expires: null, httpOnly: true, path: '/', sameSite: 'lax' };
      const text = JSON.stringify({ cookie, ...attributesOf(bytes) });
      await redis.set(`sess:${randomBytes(24).toString('base64url')}`, text, 'EX', 1800);
    });
  },
};

/** Each of so many bytes of JSON. */
function attributesOf(bytes: number): Record<string, string> {
  const value = (n: number) => [
    `attribute${n}`,
    randomBytes(bytes)
      .toString('hex')
      .slice(0, bytes - 2),
  ];
  return Object.fromEntries(Array.from({ length: ATTRIBUTES }, (_, n) => value(n))) as Record<string, string>;
}

async function measure(redis: Redis, create: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await usedMemory(redis);
  await inFlight(
    Array.from({ length: SESSIONS }, (_, n) => n),
    16,
    create,
  );
  return { bytes: ((await usedMemory(redis)) - before) / SESSIONS };
}

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

const comparisons: Comparison[] = [];
let version: string | undefined;
for (const bytes of SIZES) {
  const contenders = [];
  for (const [name, layout] of Object.entries(LAYOUTS)) {
    // A new one: what another layout has left behind must not count.
    const server = await RedisServer.start({ args: name === WITH_512 ? ['--hash-max-listpack-value', '512'] : [] });
    const redis = new Redis(server.url);
    const figures = Object.entries(await layout(server, redis, bytes)).map(([figure, value]) => [figure, [value]]);
    contenders.push({ name, figures: Object.fromEntries(figures) as Record<string, number[]> });
    [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
    redis.disconnect();
    await server.stop();
  }
  comparisons.push({ title: `${ATTRIBUTES} x ${bytes} B`, contenders });
}
console.log(memoryReport(await writeResults('memory', comparisons, version)));
