import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

// The rights of an application on a managed Redis, which forbids CONFIG.
const WITHOUT_CONFIG = [
  '~nest:session:*',
  '&__keyspace@0__:nest:session:sessions:expires:*',
  // With several partitions.
  '&__keyspace@0__:nest:session:{*}:sessions:expires:*',
  '&__keyevent@0__:expired',
  '+@all',
  '-@admin',
  '-@dangerous',
  '-config',
  '+info',
];

/** Never during a test: an end that is reported without a sweep by the test comes from a notification. */
const NEVER = '0 0 0 29 2 *';

describe.each([
  { name: 'with notifications', flags: 'Kx', acl: false, sweeps: false },
  { name: 'with the notifications of others', flags: 'Ex', acl: false, sweeps: false },
  { name: 'with notifications that it has to switch on', flags: '', acl: false, sweeps: false },
  { name: 'without notifications', flags: '', acl: false, sweeps: true, notifications: 'off' as const },
  { name: 'as a user without CONFIG', flags: '', acl: true, sweeps: true },
  { name: 'as a user without CONFIG where notifications are on', flags: 'Kx', acl: true, sweeps: false },
  { name: 'as a user without CONFIG where notifications are on for others', flags: 'Ex', acl: true, sweeps: false },
  { name: 'in four partitions with notifications', flags: '', acl: false, sweeps: false, count: 4 },
  { name: 'in four partitions as a user without CONFIG', flags: 'Kx', acl: true, sweeps: false, count: 4 },
  { name: 'in four partitions with those of others', flags: 'Ex', acl: true, sweeps: false, count: 4 },
  {
    name: 'in four partitions without',
    flags: '',
    acl: false,
    sweeps: true,
    notifications: 'off' as const,
    count: 4,
  },
])('an expiry, $name', ({ flags, acl, sweeps, notifications = 'auto' as const, count = 1 }) => {
  let server: RedisServer;
  let client: Redis;
  let app: App;

  beforeAll(async () => {
    server = await RedisServer.start({ args: ['--notify-keyspace-events', flags] });
    client = new Redis(server.url);
    if (acl) await client.acl('SETUSER', 'app', 'on', '>secret', ...WITHOUT_CONFIG);
    const url = acl ? `redis://app:secret@127.0.0.1:${server.port}` : server.url;
    const redis = { url, notifications, partitions: count, cleanup: { cron: NEVER } };
    app = await App.start({ session: { timeout: '2s' }, redis });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  const openSession = async () => {
    const { id } = (await app.agent().post('/set/cart', { value: ['apple'] })).json() as { id: string };
    return id;
  };

  it('is reported once, with the attributes the session had', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, openSession));
    if (sweeps) {
      // A sweep of the coming minutes as well, instead of a wait for the next one.
      const partitions = new SessionPartitions('nest:session', count);
      for (const id of ids) await untilOver(client, partitions.of(id).shadow(id));
      await app.sweeper.runOnce({ ahead: 120_000 });
    }
    for (const id of ids) {
      const event = await app.events.next('expired', id);
      expect(event.session.getAttribute('cart')).toEqual(['apple']);
      expect(event).toMatchObject({ id: `expired-${id}`, dataLost: false });
    }
    await app.sweeper.runOnce({ ahead: 120_000 });
    // This event is recorded after any event of the sweep.
    await app.events.next('created', await openSession());
    for (const id of ids) expect(app.events.count('expired', id)).toBe(1);
    const [, set = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
    expect(new Set(set)).toEqual(new Set(sweeps ? '' : acl ? flags : flags + 'Kx'));
  });
});

/** Waits until the clock of Redis has passed the end of the session. */
async function untilOver(client: Redis, shadow: string): Promise<void> {
  const end = await client.pexpiretime(shadow);
  await eventually(async () => {
    const [seconds, microseconds] = await client.time();
    return Number(seconds) * 1000 + Number(microseconds) / 1000 > end;
  });
}
