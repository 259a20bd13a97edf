import { LeakGuard } from '@nest-session/test-infrastructure';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { TimedApplication, untilEnded } from '../support/timed.application.js';
import { TIMER_SERVERS } from '../support/timer.servers.js';

LeakGuard.install();

it('a BullMqSessionTimer needs no rights but those that are documented for it', async () => {
  const store = await Store.open();
  for (const rules of documentedLines(['bullmq'])) await store.client.call('ACL', 'SETUSER', 'timer', ...rules);
  const connection = { port: store.server.port, username: 'timer', password: 'another-secret' };
  const applications = [await TimedApplication.on(store, new BullMqSessionTimer({ connection }))];
  try {
    const ids = await applications[0]!.create(20, 1);
    await untilEnded(store, applications, ids);
    expect(await store.client.call('ACL', 'LOG')).toEqual([]);
  } finally {
    await Promise.all(applications.map((application) => application.stop()));
    await store.close();
  }
});

it.each([
  ['no options', undefined, 'is missing: options of ioredis, or a client.'],
  ['no connection', {}, 'is missing: options of ioredis, or a client.'],
  ['a url', { connection: 'redis://localhost' }, 'must be options of ioredis, or a client.'],
  ['null', { connection: null }, 'must be options of ioredis, or a client.'],
  ['a list', { connection: [] }, 'must be options of ioredis, or a client.'],
])('a BullMqSessionTimer refuses %s for a connection, and says so once', (_, options, problem) => {
  const problems = [`Option \`connection\` ${problem}`];
  expect(() => new BullMqSessionTimer(options as never)).toThrow(expect.objectContaining({ problems }) as Error);
});

it.each([
  ['a client', (options: RedisOptions) => new Redis({ ...options, lazyConnect: true })],
  ['a client of a Cluster', (redisOptions: RedisOptions) => new Cluster([], { lazyConnect: true, redisOptions })],
])('a BullMqSessionTimer refuses %s that gives calls up, before it opens a connection', (_, clientWith) => {
  const problems = ['Option `connection` needs `maxRetriesPerRequest: null` in a client.'];
  const timerOn = (maxRetriesPerRequest: number | null) =>
    new BullMqSessionTimer({ connection: clientWith({ maxRetriesPerRequest }) });
  expect(() => timerOn(20)).toThrow(expect.objectContaining({ problems }) as Error);
  expect(() => timerOn(null)).not.toThrow();
});

it.each(TIMER_SERVERS)('with a %s alone, each end is reported once and none early', async (_name, open) => {
  const [store, server] = [await Store.open(), await open()];
  const applications = [await TimedApplication.on(store, server.timer())];
  try {
    applications.push(await TimedApplication.on(store, server.timer()));
    const created = applications.flatMap((application) => [application.create(20, 1), application.create(20, 2)]);
    await untilEnded(store, applications, (await Promise.all(created)).flat());
  } finally {
    await Promise.all(applications.map((application) => application.stop()));
    await server.close();
    await store.close();
  }
});
