import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { LineRecorder } from '../../../session-redis/test/support/line.recorder.js';

// A worker of BullMQ whose server is away leaves a timer of six seconds.
LeakGuard.install({ grace: 10_000 });

const log = new LineRecorder().install();
const told = (pattern: RegExp) => log.matching(pattern);

beforeEach(() => {
  log.lines.length = 0;
});

it('a BullMqSessionTimer stops, and leaves the event loop free, when what it has reached is no Redis', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const timer = new BullMqSessionTimer({ connection: { host: '127.0.0.1', port } });
  timer.start(async () => undefined);
  await eventually(() => expect(told(/^BullMQ does not report .* find them: /)).toHaveLength(1));
  await timer.stop();
  await new Promise((resolve) => server.close(resolve));
});

it('a BullMqSessionTimer logs each outage, and its end when a job comes again', async () => {
  const server = await RedisServer.start();
  const timer = new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: server.port } });
  timer.start(async () => undefined);
  try {
    for (let outage = 1; outage <= 2; outage++) {
      await server.kill();
      await eventually(() => expect(told(/^BullMQ does not report .* find them: /)).toHaveLength(outage));
      await server.restart();
      await eventually(() => timer.schedule(`job-${outage}`, 10));
      await eventually(() => expect(told(/^BullMQ reports ended sessions again/)).toHaveLength(outage));
    }
  } finally {
    await timer.stop();
    await server.stop();
  }
});

it('a BullMqSessionTimer asks soon after its Redis accepts writes again, also about a session that it was asking about', async () => {
  const server = await RedisServer.start();
  const admin = new Redis(server.url);
  const timer = new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: server.port } });
  const asked: string[] = [];
  const gate = new Gate();
  timer.start(async (id) => {
    asked.push(id);
    if (asked.filter((each) => each === id).length > 1) return undefined;
    await gate.pass();
    return 10;
  });
  const refused = async () => Number(/errorstat_NOREPLICAS:count=(\d+)/.exec(await admin.info('errorstats'))?.[1] ?? 0);
  try {
    for (const id of ['in-hand', 'waits']) await eventually(() => timer.schedule(id, id === 'waits' ? 2000 : 10));
    await gate.reached();
    await admin.config('SET', 'min-replicas-to-write', '1');
    gate.open();
    await eventually(async () => expect(await refused()).toBeGreaterThan(10));
    await admin.config('SET', 'min-replicas-to-write', '0');
    // BullMQ itself would pause for 15 seconds, and the lock of the job would have to end.
    await eventually(() => expect(asked.toSorted()).toEqual(['in-hand', 'in-hand', 'waits', 'waits']), {
      timeout: 7000,
    });
  } finally {
    await timer.stop();
    admin.disconnect();
    await server.stop();
  }
});

it('a BullMqSessionTimer keeps nothing of a job that is done, and can schedule the same id again', async () => {
  const server = await RedisServer.start();
  const connection = { host: '127.0.0.1', port: server.port };
  const queue = new Queue('{session-ends}', { connection });
  const timer = new BullMqSessionTimer({ connection });
  const asked: string[] = [];
  timer.start(async (id) => void asked.push(id));
  const kept = async () => Object.values(await queue.getJobCounts()).reduce((sum, count) => sum + count, 0);
  try {
    for (let round = 1; round <= 2; round++) {
      await eventually(() => timer.schedule('session', 10));
      await eventually(() => expect(asked).toHaveLength(round));
      await eventually(async () => expect(await kept()).toBe(0));
    }
    expect(await queue.getJob('session')).toBeUndefined();
  } finally {
    await Promise.all([timer.stop(), queue.close()]);
    await server.stop();
  }
});

it('a BullMqSessionTimer serves one application at a time', async () => {
  const server = await RedisServer.start();
  const timer = new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: server.port } });
  timer.start(async () => undefined);
  expect(() => timer.start(async () => undefined)).toThrow(/already serves another application/);
  await timer.stop();
  await server.stop();
});
