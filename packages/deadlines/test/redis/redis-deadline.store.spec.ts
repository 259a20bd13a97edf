import { JsonAttributeSerializer } from '@nest-session/core';
import type { DeadlinePage, StoredDeadline } from '@nest-session/deadlines/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { RedisDeadlineStore } from '../../src/redis/redis-deadline.store.js';
import { DeadlineEncryption } from '../../src/redis/redis-deadline.options.js';
import { KeyRing } from '../../../session-redis/src/encryption/key-ring.js';
import { DeadlinePartitions } from '../../src/redis/deadline-keys.js';
import { DeadlineScripts } from '../../src/scripts/deadlines/deadline.scripts.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const NAME = 'order.payment-due';
const HOUR = 60 * MINUTE;
const KEYS = ['1', '2', '3', '4', '5'];

/** Something can happen once, between the two steps of a page. */
class InterruptedConnection extends RequestConnection {
  meanwhile: (() => Promise<unknown>) | undefined;

  override async runInAll<T>(...args: Parameters<typeof RequestConnection.prototype.runInAll<T, never>>): Promise<T[]> {
    const replies = await super.runInAll<T, never>(...args);
    const { meanwhile } = this;
    this.meanwhile = undefined;
    await meanwhile?.();
    return replies;
  }
}

describe.each([1, 4])('pages of deadlines in %d partitions', (partitions) => {
  let server: RedisServer;
  let client: Redis;
  let connection: InterruptedConnection;
  let store: RedisDeadlineStore;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    connection = new InterruptedConnection(new SingleNode(client), { commandTimeout: 10 * MINUTE });
    store = new RedisDeadlineStore(
      connection,
      (redis) => new DeadlineScripts(redis),
      new DeadlinePartitions('nest:deadlines', partitions),
      { hurry: () => undefined },
      {
        serializer: new JsonAttributeSerializer(),
        encryption: new DeadlineEncryption({ ring: new KeyRing(), plainValues: 'read' }),
      },
    );
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });

  /** All pages of two, while something happens within the first one. */
  async function listed(meanwhile: () => Promise<unknown>): Promise<string[]> {
    connection.meanwhile = meanwhile;
    const all: StoredDeadline[] = [];
    for (;;) {
      const page = await store.list(NAME, { before: undefined, after: all.at(-1), limit: 2 });
      all.push(...page);
      if (page.length < 2) return all.map(({ key }) => key);
    }
  }

  /** Returns from when on the deadlines are due, one each hour. */
  async function scheduleAll(): Promise<number> {
    await client.flushall();
    const now = Date.now();
    const deadlines = KEYS.map((key) => {
      const due = { at: now + Number(key) * HOUR };
      return { key, id: key, due, text: undefined, ifExists: 'replace' as const };
    });
    await store.schedule(NAME, deadlines, 100);
    return now;
  }

  const pageOf = async (limit: number, { before, after }: Partial<DeadlinePage> = {}) =>
    (await store.list(NAME, { before, after, limit })).map(({ key }) => key);

  it.each([5, 6, 100])('leave out none that is moved on the last page, of up to %d', async (limit) => {
    const now = await scheduleAll();
    connection.meanwhile = () => store.reschedule(NAME, '5', { at: now + 10 * HOUR });
    expect(await pageOf(limit)).toEqual(KEYS);
    connection.meanwhile = () => store.reschedule(NAME, '1', { at: now + 20 * HOUR });
    expect(await pageOf(limit)).toEqual(['2', '3', '4', '5', '1']);
    connection.meanwhile = () => store.reschedule(NAME, '1', { at: now + HOUR });
    expect(await pageOf(limit)).toEqual(KEYS);
    const [second] = await store.list(NAME, { before: now + 3 * HOUR, after: { key: '1', dueAt: now + HOUR }, limit });
    connection.meanwhile = () => store.reschedule(NAME, '5', { at: now + 9 * HOUR });
    expect(await pageOf(limit, { after: second })).toEqual(['3', '4', '5']);
  });

  it('have none that is not due before an instant any more', async () => {
    const now = await scheduleAll();
    connection.meanwhile = () => store.reschedule(NAME, '2', { at: now + 10 * HOUR });
    expect(await pageOf(100, { before: now + 3.5 * HOUR })).toEqual(['1', '3']);
  });

  it('are full although some go meanwhile, and have one that is moved before them', async () => {
    const now = await scheduleAll();
    connection.meanwhile = () =>
      Promise.all([
        store.cancel(NAME, '1'),
        store.reschedule(NAME, '2', { at: now + 2.5 * HOUR }),
        store.reschedule(NAME, '5', { at: now + 0.5 * HOUR }),
      ]);
    expect(await pageOf(2)).toEqual(['5', '2']);
  });

  it.each([
    { what: 'later', at: 10 * HOUR, keys: ['1', '3', '4', '5', '2'] },
    { what: 'a little later', at: 3.5 * HOUR, keys: ['1', '3', '2', '4', '5'] },
    { what: 'earlier', at: HOUR / 2, keys: ['2', '1', '3', '4', '5'] },
  ])('have each deadline once, although the last one of a page is moved $what', async ({ at, keys }) => {
    const now = await scheduleAll();
    expect(await listed(() => store.reschedule(NAME, '2', { at: now + at }))).toEqual(keys);
  });
});
