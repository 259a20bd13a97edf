import { Logger } from '@nestjs/common';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { KeyEvents, recordedExpirations } from '../support/key-event.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const logged: string[] = [];
/** Without the lines of outages, which are about connections, not about notifications. */
const record = (line: string) => void (/announce|^Caught up/.test(line) && logged.push(line));
Logger.overrideLogger({ log: record, warn: record, error: record });

const ANNOUNCES = 'Redis announces expired sessions';
const GONE = expect.stringContaining('the cleanup job will find them: there is no connection to Redis') as string;
const HOUR = 3_600_000;
const caughtUp = (count: number) => `Caught up with ${count} sessions that had ended unheard`;

// A Redis that keeps its data but not its CONFIG, and disconnects a slow subscriber early.
const ARGS = ['--appendonly', 'yes', '--appendfsync', 'always', '--client-output-buffer-limit', 'pubsub 100kb 0 0'];
// Milliseconds of silence after which the notification connection counts as dead, where a test waits for that.
const SILENCE = 10_000;
const PATIENCE = { timeout: 120_000 };

const DEBUG = ['--enable-debug-command', 'local'];

let store: Store;
let proxy: TcpProxy;
/** Only its connection for notifications leads through the proxy. */
let instance: KeyEvents;

beforeAll(async () => {
  store = await Store.open({ args: [...ARGS, ...DEBUG] });
  proxy = await TcpProxy.start({ port: store.server.port });
});
beforeEach(async () => {
  await store.client.flushall();
  logged.length = 0;
});
afterEach(async () => {
  await instance.stop();
  proxy.release();
  await proxy.accept();
  await store.client.config('SET', 'notify-keyspace-events', '');
});
afterAll(async () => {
  await store.close();
  await proxy.stop();
});

const state = () => instance.notifications.health.state;
const setFlags = (flags: string) => store.client.config('SET', 'notify-keyspace-events', flags);

async function start({ url = store.server.url, silence }: { url?: string; silence?: number } = {}): Promise<void> {
  instance = KeyEvents.start(store, url, proxy.url, silence);
  await isLive();
}

/** An instance of a user with these rights. */
async function startAs(...rights: string[]): Promise<void> {
  await store.client.acl('SETUSER', 'app', 'reset', 'on', '>secret', '~*', '+@all', ...rights);
  instance = KeyEvents.start(store, `redis://app:secret@127.0.0.1:${store.server.port}`);
}

const create = (count: number) =>
  Promise.all(Array.from({ length: count }, () => store.create({ a: '1' }, { interval: 1 })));

/** Sessions that have ended, in buckets that only a sweep an hour ahead reads. */
async function createOver(count: number): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => store.create({ a: '1' })));
  await store.expireSoon(...ids);
  await end(ids);
  return ids;
}

/** Waits until Redis has expired these sessions and published their key events. */
async function end(ids: readonly string[]): Promise<void> {
  await eventually(async () => (await store.client.exists(...ids.map((id) => store.keys.shadow(id)))) === 0);
}

/** Expects this line in the log, and no other. */
async function hasLogged(...lines: unknown[]): Promise<void> {
  await eventually(() => expect(logged).toEqual(lines));
}

async function isRecordedOnce(ids: readonly string[]): Promise<void> {
  await eventually(async () => {
    const counts = await recordedExpirations(store);
    expect(ids.filter((id) => counts.get(id) !== 1)).toEqual([]);
  });
}

/** Expects an expiry to be recorded by its key event: the bucket of this session is too far ahead for a sweep. */
async function isLive(): Promise<void> {
  await eventually(() => state() === 'listening');
  await isRecordedOnce(await createOver(1));
}

it('an application catches up after its subscriber was killed, and logs one line for each state', async () => {
  await start();
  proxy.refuse();
  await store.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const lost = await create(50);
  await end(lost);
  await proxy.accept();
  await isRecordedOnce(lost);
  await isLive();
  await hasLogged(ANNOUNCES, GONE, ANNOUNCES, caughtUp(50));
});

it('an application loses no expiry while its subscriber is killed repeatedly', async () => {
  await start();
  const ids = await create(100);
  for (let round = 0; round < 10; round++) {
    await store.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => expect(logged.filter((line) => line === ANNOUNCES)).toHaveLength(round + 2));
  }
  await end(ids);
  await isRecordedOnce(ids);
  await isLive();
});

it('an application detects a dead connection and catches up once Redis is reachable', async () => {
  await start({ silence: SILENCE });
  proxy.blackHole();
  const lost = await create(50);
  await end(lost);
  await eventually(() => state() === 'connecting', PATIENCE);
  proxy.blackHole(false);
  await isRecordedOnce(lost);
  await isLive();
  await hasLogged(ANNOUNCES, GONE, ANNOUNCES, caughtUp(50));
});

it('an application catches up after its notifications overflowed the output buffer', async () => {
  await start();
  // All expire at once, when the test reads them: Redis does not expire them one by one.
  await store.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0');
  const ids = await Promise.all(Array.from({ length: 1000 }, () => store.create({ a: '1' })));
  // In a bucket that the next sweep reads.
  for (const minute of await store.client.zrange(store.keys.bucketList, '0', '-1')) {
    await store.client.sunionstore(store.keys.bucket('60000'), store.keys.bucket('60000'), store.keys.bucket(minute));
  }
  await store.client.zadd(store.keys.bucketList, 60_000, '60000');
  await store.expireSoon(...ids);
  await end(ids);
  await store.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '1');
  await isRecordedOnce(ids);
  await isLive();
  // Only the full output buffer can have closed the connection.
  await hasLogged(ANNOUNCES, GONE, ANNOUNCES, expect.stringMatching(/^Caught up with [1-9]/));
});

it('an application catches up after Redis restarted without its CONFIG, and sets it again', async () => {
  await start();
  const lost = await create(50);
  proxy.refuse();
  await store.server.kill();
  await store.server.restart();
  await end(lost);
  await proxy.accept();
  await isRecordedOnce(lost);
  await isLive();
  expect(await store.client.config('GET', 'notify-keyspace-events')).toEqual(['notify-keyspace-events', 'xK']);
});

it('an application is notified again after Redis was frozen', async () => {
  await start({ silence: SILENCE });
  const lost = await create(50);
  store.server.freeze();
  await eventually(() => state() === 'connecting', PATIENCE);
  store.server.thaw();
  await isRecordedOnce(lost);
  await isLive();
});

it('an application switches notifications on again when they were switched off, and catches up', async () => {
  await start({ url: proxy.url });
  // So that the instance does not notice at once.
  proxy.hold('request', 'notify-keyspace-events');
  await proxy.untilHeld('request');
  await setFlags('');
  const lost = await create(50);
  await end(lost);
  proxy.release();
  await isRecordedOnce(lost);
  await isLive();
  await hasLogged(ANNOUNCES, caughtUp(50));
});

it('an application without CONFIG relies on the sweep until notifications are switched on', async () => {
  await startAs('&*', '-config');
  await eventually(() => state() === 'silent');
  expect(logged).toEqual([expect.stringMatching(/cleanup job will find them: CONFIG is not allowed .*NOPERM.* "Kx"/)]);
  await createOver(50);
  expect(await instance.sweeper.runOnce({ ahead: HOUR })).toMatchObject({ claimed: 50 });
  await setFlags('Kx');
  await isLive();

  await setFlags('');
  await eventually(() => state() === 'silent');
  const missed = await create(50);
  await end(missed);
  await setFlags('Kx');
  await isRecordedOnce(missed);
  await isLive();
  // Some may have been reported by the sweep at the change of its subscription.
  const found = () => logged.map((line) => Number(/^Caught up with (\d+)/.exec(line)?.[1] ?? 0));
  await eventually(() => expect(found().reduce((sum, count) => sum + count, 0)).toBe(50));
});

it('an application without the right to its channel relies on the sweep until it has that right', async () => {
  await startAs('resetchannels');
  await eventually(() => state() === 'refused');
  expect(logged).toEqual([expect.stringMatching(/cleanup job will find them: the channel is not allowed .*NOPERM/)]);
  await createOver(50);
  expect(await instance.sweeper.runOnce({ ahead: HOUR })).toMatchObject({ claimed: 50 });
  await store.client.acl('SETUSER', 'app', `&__keyspace@0__:${store.keys.shadow('')}*`);
  await isLive();
});
