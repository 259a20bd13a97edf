import { LeakGuard } from '@nest-session/test-infrastructure';
import { CleanupTurns } from '../../src/cleanup/cleanup.job.js';
import { EventStreamScripts } from '../../src/scripts/event-stream.scripts.js';
import { GRACE, RETENTION, Store } from '../../../session-redis/test/support/store.fixture.js';
import { SESSION_ENTRIES } from '../../../session-redis/test/support/event-scripts.js';

LeakGuard.install();

const PARTITIONS = 4;
/** In each partition, before events are trimmed. */
const MOST = 10;
const HOUR = 3_600_000;

let store: Store;
let turns: CleanupTurns;
beforeAll(async () => {
  store = await Store.open({ partitions: PARTITIONS });
  const rules = { grace: GRACE, retention: RETENTION, maxLength: PARTITIONS * MOST };
  const scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
  turns = new CleanupTurns(scripts, { consumer: 'me' }, rules, store.partitions);
});
afterEach(() => store.client.flushall());
afterAll(() => store.close());

it('a partition is due when it has more than its share of the events', async () => {
  const [keys] = store.partitions.all;
  for (let i = 0; i < MOST; i++) await store.client.xadd(keys!.events, '*', 'type', 'created');
  expect(await turns.take(keys!, HOUR)).toBe('clean');
  await store.client.xadd(keys!.events, '*', 'type', 'created');
  expect(await turns.take(keys!, HOUR)).toBe('due');
});

it('a partition with nothing but dead letters is due', async () => {
  const [keys] = store.partitions.all;
  await store.client.xadd(keys!.deadLetters, '*', 'reason', 'x');
  expect(await turns.take(keys!, HOUR)).toBe('due');
});

it('a partition has its turn again after each question and each cleanup that fails', async () => {
  const [keys, other] = store.partitions.all;
  await store.client.call('ACL', 'SETUSER', 'frugal', 'on', '>secret', '~*', '&*', '+@all');
  const client = store.client.duplicate({ username: 'frugal', password: 'secret' });
  const scripts = new EventStreamScripts(client, SESSION_ENTRIES);
  const rules = { grace: GRACE, retention: RETENTION, maxLength: 1 };
  const own = new CleanupTurns(scripts, { consumer: 'me' }, rules, store.partitions);
  for (let round = 1; round <= 2; round++) {
    await store.client.call('ACL', 'SETUSER', 'frugal', '-evalsha', '-eval');
    await expect(own.take(keys!, HOUR)).rejects.toThrow('NOPERM');
    await store.client.call('ACL', 'SETUSER', 'frugal', '+evalsha', '+eval');
    expect(await own.take(keys!, HOUR)).toBe('clean');
    const failing = own.during(keys!, async () => {
      expect([await own.take(keys!, HOUR), await own.take(other!, HOUR)]).toEqual(['busy', 'clean']);
      throw new Error('no cleanup');
    });
    await expect(failing).rejects.toThrow('no cleanup');
    expect(await own.take(keys!, HOUR)).toBe('clean');
  }
  client.disconnect();
});

it('a turn that nobody can have taken is free: one without an end, or one longer than the time between two ticks', async () => {
  const [keys] = store.partitions.all;
  await store.client.set(keys!.cleanup, 'other');
  expect(await turns.take(keys!, HOUR)).toBe('clean');
  // As it is when the clock of Redis is set back by an hour.
  await store.client.set(keys!.cleanup, 'other', 'PX', 2 * HOUR);
  expect(await turns.take(keys!, HOUR)).toBe('clean');
  expect(await store.client.get(keys!.cleanup)).toBe('me');
  expect(await store.client.pttl(keys!.cleanup)).toBeLessThanOrEqual(0.9 * HOUR);
  await store.client.set(keys!.cleanup, 'other', 'PX', 0.9 * HOUR);
  expect(await turns.take(keys!, HOUR)).toBe('taken');
});
