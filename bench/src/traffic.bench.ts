import { RedisServer } from '@nest-session/testing';
import { generateSessionKey, type StorePrimitives } from '@nest-session/core/internal';
import { Redis } from 'ioredis';
import { redisUsage } from './redis.usage.js';
import { inFlight, startStore } from './store.context.js';
import { number, table } from './table.js';

// What a session costs Redis besides memory: calls, commands with those that scripts call, bytes of the network, and
// processor time. For docs/scaling.md.
const SESSIONS = process.env.BENCH_QUICK ? 1000 : 5000;
const ATTRIBUTES = 8;
const BYTES = 100;
const IN_FLIGHT = 16;
const PRINCIPAL = 'principal';

const text = JSON.stringify('x'.repeat(BYTES - 2));
const attributes = new Map(Array.from({ length: ATTRIBUTES }, (_, n) => [`attribute${n}`, text]));
const one = new Map([['attribute0', text]]);
const NOTHING = new Map<string, string>();

type Operation = (store: StorePrimitives, id: string, n: number) => Promise<unknown>;

const create: Operation = (store, id, n) => {
  const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  const indexes = new Map([[PRINCIPAL, `user${n}`]]);
  return store.write({ kind: 'create', id, presentedIds: [], ...times, attributes, indexes });
};

const OPERATIONS: Record<string, Operation> = {
  load: (store, id) => store.load([id]),
  touch: (store, id) => store.write({ kind: 'touch', id }),
  'save, one attribute': (store, id) => store.write({ kind: 'update', id, attributes: one, indexes: NOTHING }),
  rotation: (store, id) =>
    store.write({ kind: 'update', id, newId: generateSessionKey().id, attributes: NOTHING, indexes: NOTHING }),
  end: (store, id) => store.write({ kind: 'delete', id }),
};

async function usage(redis: Redis) {
  const stats = await redis.info('stats');
  const of = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(stats)?.[1]);
  const { processorTime, commands } = await redisUsage(redis);
  const replied = of('total_net_output_bytes');
  return { processorTime, commands, received: of('total_net_input_bytes'), replied };
}

const server = await RedisServer.start();
const redis = new Redis(server.url);
const { store, sweep, stop } = await startStore({
  url: server.url,
  notifications: 'off',
  cleanup: { cron: '0 0 0 29 2 *' },
});
const rows: string[][] = [];

async function measure(name: string, act: () => Promise<unknown>): Promise<void> {
  const before = await usage(redis);
  await act();
  const after = await usage(redis);
  const each = (figure: keyof typeof before) => (after[figure] - before[figure]) / SESSIONS;
  rows.push([
    name,
    each('commands').toFixed(1),
    number(each('received')),
    number(each('replied')),
    number(each('processorTime')),
  ]);
}

async function ids(): Promise<string[]> {
  const all = Array.from({ length: SESSIONS }, () => generateSessionKey().id);
  await inFlight([...all.entries()], IN_FLIGHT, ([n, id]) => create(store, id, n));
  return all;
}

// The text of each script travels once on each connection.
const warmUp = await ids();
for (const operation of Object.values(OPERATIONS)) await operation(store, warmUp.pop()!, 0);
await measure('creation', ids);
for (const [name, operation] of Object.entries(OPERATIONS)) {
  const all = await ids();
  await measure(name, () => inFlight([...all.entries()], IN_FLIGHT, ([n, id]) => operation(store, id, n)));
}
await redis.flushall();
const all = await ids();
for (const id of all) await redis.del(`nest:session:sessions:expires:${id}`);
await measure('expiry, found by the sweep', sweep);
console.log(`${ATTRIBUTES} attributes of ${BYTES} bytes, and a principal; Node.js ${process.version}`);
console.log(table(['operation', 'commands', 'bytes to Redis', 'bytes from Redis', 'Redis µs'], rows));
await stop();
redis.disconnect();
await server.stop();
