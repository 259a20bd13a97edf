import { LeakGuard } from '@nest-session/test-infrastructure';
import { CleanupTurns } from '../../src/expiration/cleanup-turns.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { KEEPING_RULES, Store } from '../support/store.fixture.js';

LeakGuard.install();

const PARTITIONS = 4;
/** In each partition, before events are trimmed. */
const MOST = 10;
const HOUR = 3_600_000;

let store: Store;
let turns: CleanupTurns;
beforeAll(async () => {
  store = await Store.open({ partitions: PARTITIONS });
  const rules = { maxLength: PARTITIONS * MOST };
  turns = new CleanupTurns(store.scripts, { consumer: 'me' }, rules, store.partitions);
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

it('a partition has its turn again after each question and each cleanup that fails', async () => {
  const [keys, other] = store.partitions.all;
  await store.client.call('ACL', 'SETUSER', 'frugal', 'on', '>secret', '~*', '&*', '+@all');
  const client = store.client.duplicate({ username: 'frugal', password: 'secret' });
  const scripts = new SessionScripts(client, store.partitions, KEEPING_RULES);
  const own = new CleanupTurns(scripts, { consumer: 'me' }, { maxLength: 1 }, store.partitions);
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
