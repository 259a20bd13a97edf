import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { monitorOf } from '../../../session-redis/test/support/monitor-of.js';

LeakGuard.install();

const start = (url: string) => EventInstance.start({ redis: { url, notifications: 'off', commandTimeout: '1s' } });
const warnings = () => EventInstance.log.matching(/may evict sessions/);
const warningOf = (policy: string): unknown => expect.stringMatching(new RegExp(`maxmemory-policy is ${policy}\\.`));

beforeEach(() => void EventInstance.log.lines.splice(0));

it('a policy that evicts is one warning after the reconnection that finds it, until it has changed', async () => {
  const server = await RedisServer.start();
  const admin = new Redis(server.url);
  const monitor = await monitorOf(admin);
  let looks = 0;
  monitor.on('monitor', (_time: string, args: string[]) => {
    if (args.join(' ') === 'info memory') looks++;
  });
  const instance = await start(server.url);
  const reconnect = async (policy: string) => {
    await admin.config('SET', 'maxmemory-policy', policy);
    const before = looks;
    for (const name of ['request', 'background']) await kill(admin, `nest:session:${name}`);
    await eventually(() => expect(looks).toBeGreaterThan(before));
  };
  try {
    expect(warnings()).toEqual([]);
    for (const policy of ['allkeys-lru', 'allkeys-lru', 'noeviction', 'allkeys-lru', 'volatile-lru']) {
      await reconnect(policy);
    }
    const expected = [warningOf('allkeys-lru'), warningOf('allkeys-lru'), warningOf('volatile-lru')];
    await eventually(() => expect(warnings()).toEqual(expected));
  } finally {
    await instance.stop();
    monitor.disconnect();
    admin.disconnect();
    await server.stop();
  }
});

it('a Redis that comes after the start is looked at, and so is the one that replaces it', async () => {
  const port = await freePort();
  const instance = await start(`redis://127.0.0.1:${port}`);
  try {
    for (const policy of ['allkeys-random', 'volatile-ttl']) {
      const server = await RedisServer.start({ port, args: ['--maxmemory-policy', policy] });
      await eventually(() => expect(warnings().at(-1)).toEqual(warningOf(policy)));
      await server.stop();
    }
    expect(warnings()).toHaveLength(2);
  } finally {
    await instance.stop();
  }
});

/** Closes the connection with a name, from the side of Redis. */
async function kill(admin: Redis, name: string): Promise<void> {
  const clients = String(await admin.client('LIST')).split('\n');
  const id = / ?id=(\d+) /.exec(clients.find((client) => client.includes(` name=${name} `)) ?? '')?.[1];
  await admin.client('KILL', 'ID', Number(id));
}
