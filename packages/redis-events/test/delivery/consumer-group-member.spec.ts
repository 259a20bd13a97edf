import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { ConsumerGroupMember } from '../../src/delivery/consumer-group-member.js';
import { PACE } from '../../src/configuration/event-rules.js';
import type { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import type { PartitionKeys } from '../../src/partitions/partitions.js';
import { nameOf } from '../../src/scripts/stream/stream-entry.js';
import { eventReader } from '../../../session-redis/test/support/event-reader.js';
import { HandSignals } from '../../../session-redis/test/support/hand-signals.js';
import { EventStreamScripts } from '../../src/scripts/event-stream.scripts.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';
import { DEAD_LETTERS, MINUTE, RETENTION, Store } from '../../../session-redis/test/support/store.fixture.js';
import { SESSION_ENTRIES } from '../../../session-redis/test/support/event-scripts.js';

LeakGuard.install();

const GROUP = 'default';
const RULES = {
  lease: 30_000,
  attempts: 10,
  mostAbandoned: 5,
  firstBackOff: 1000,
  longestBackOff: 1000,
  retention: RETENTION,
  deadLetters: DEAD_LETTERS,
};

function memberOf({ client, partitions }: Store, consumer: string, signals = new HandSignals()): ConsumerGroupMember {
  const member = { group: GROUP, consumer };
  const scripts = new EventStreamScripts(client, SESSION_ENTRIES);
  const unread = eventReader(client, partitions, member, signals);
  return new ConsumerGroupMember(unread, scripts, partitions, member, RULES, signals);
}

describe.each([1, 4])('a member of a group in %d partitions', (partitions) => {
  const { signal } = new AbortController();
  let store: Store;
  let group: ConsumerGroupMember;
  let signals: HandSignals;
  beforeAll(async () => {
    store = await Store.open({ partitions });
  });
  beforeEach(async () => {
    await store.client.flushall();
    signals = new HandSignals();
    group = memberOf(store, 'me', signals);
    await group.ensure();
  });
  afterAll(() => store.close());

  const streams = () => store.partitions.all.map(({ events }) => events);

  /** Events in each stream that an instance received a minute ago and has not finished. */
  async function abandon(
    count: number,
    some = streams(),
    tell = (keys: PartitionKeys) => signals.tell(keys, 'retries'),
  ): Promise<void> {
    const { client } = store;
    for (const events of some) {
      for (let i = 0; i < count; i++) await client.xadd(events, '*', 'type', 'created', 'session', 's');
      await client.xreadgroup('GROUP', GROUP, 'dead', 'COUNT', count, 'STREAMS', events, '>');
    }
    await age('dead');
    // Else it would look again only after a lease.
    for (const keys of store.partitions.all) if (some.includes(keys.events)) tell(keys);
  }

  /** As if the leases of an instance had not been renewed for a minute. */
  async function age(consumer: string): Promise<void> {
    const { client } = store;
    for (const events of streams()) {
      const pending = (await client.xpending(events, GROUP, '-', '+', 100, consumer)) as [string][];
      for (const [position] of pending) {
        await client.xclaim(events, GROUP, consumer, 0, position, 'IDLE', MINUTE, 'JUSTID');
      }
    }
  }

  it.each([1, 2, 3, 5, 8, 100])('claims each event once, and never more than %d at a time', async (places) => {
    await abandon(6);
    const taken: string[] = [];
    for (let last = Infinity; last > 0;) {
      const deliveries = await group.pickUpEvents(places, signal);
      last = deliveries.length;
      expect(last).toBeLessThanOrEqual(places);
      taken.push(...deliveries.map(({ entry }) => nameOf(entry)));
    }
    expect(taken).toHaveLength(6 * partitions);
    expect(new Set(taken).size).toBe(6 * partitions);
  });

  it('claims an event that is in one partition only', async () => {
    for (const events of streams().toReversed()) {
      await abandon(1, [events]);
      expect(await group.pickUpEvents(1, signal)).toHaveLength(1);
    }
  });

  it('looks again for what a signal has told of during a look', async () => {
    const [keys] = store.partitions.all.toReversed();
    const looking = group.pickUpEvents(100, signal);
    signals.tell(keys!, 'retries');
    expect(await looking).toEqual([]);
    await abandon(1, [keys!.events], () => undefined);
    expect(await group.pickUpEvents(100, signal)).toHaveLength(1);
  });

  it('renews the leases of its events in all partitions', async () => {
    await abandon(2);
    const taken = await group.pickUpEvents(100, signal);
    await age('me');
    await group.renew(taken.map(({ entry }) => entry));
    expect(await group.pickUpEvents(100, signal)).toEqual([]);
    await age('me');
    expect(await group.pickUpEvents(100, signal)).toHaveLength(2 * partitions);
  });

  it('claims from no further partition once it is stopping', async () => {
    await abandon(1);
    const stopping = new AbortController();
    const taking = group.pickUpEvents(100, stopping.signal);
    stopping.abort();
    expect(await taking).toEqual([]);
    const owned = await Promise.all(
      streams().map((events) => store.client.xpending(events, GROUP, '-', '+', 9, 'dead')),
    );
    expect(owned.flat()).toHaveLength(partitions);
  });

  it('keeps working after its streams were deleted', async () => {
    await abandon(1);
    await store.client.flushall();
    expect(await group.pickUpEvents(100, signal)).toEqual([]);
    await abandon(1);
    expect(await group.pickUpEvents(100, signal)).toHaveLength(partitions);
    await store.client.flushall();
    expect(await group.read(100, 1)).toEqual([]);
    for (const events of streams()) await store.client.xadd(events, '*', 'type', 'created');
    expect(await group.read(100, 1)).toHaveLength(partitions);
  });

  describe('acknowledges entries that are finished in one turn', () => {
    const readAll = async () => {
      for (const events of streams()) {
        for (let i = 0; i < 3; i++) await store.client.xadd(events, '*', 'type', 'created', 'session', 's');
      }
      const events = await group.read(100, 1);
      expect(events).toHaveLength(3 * partitions);
      return events;
    };

    it('in one call for each partition', async () => {
      const events = await readAll();
      await store.client.config('RESETSTAT');
      await Promise.all(events.map(({ entry }) => group.acknowledge(entry)));
      expect((await commandStats(store.client)).get('xack')).toMatchObject({ calls: partitions });
      expect(await store.pending(GROUP)).toBe(0);
    });

    it('all or none, and tells each caller when none was acknowledged', async () => {
      const events = await readAll();
      for (const keys of store.partitions.all) await store.client.set(keys.failing(GROUP), 'planted');
      const results = await Promise.allSettled(events.map(({ entry }) => group.acknowledge(entry)));
      expect(results.map(({ status }) => status)).toEqual(events.map(() => 'rejected'));
      expect(await store.pending(GROUP)).toBe(events.length);
    });
  });
});

it('an instance that leaves its group tells the others of what failed before', async () => {
  const store = await Store.open({ partitions: 2 });
  const subscriber = store.client.duplicate();
  try {
    const heard: string[] = [];
    subscriber.on('smessage', (channel: string, message: string) => void heard.push(`${channel} ${message}`));
    for (const { events } of store.partitions.all) await subscriber.ssubscribe(events);
    const group = memberOf(store, 'me');
    await group.ensure();
    const [{ events }] = store.partitions.all as [SessionKeys];
    await store.client.xadd(events, '*', 'type', 'created', 'session', 's');
    const [pending] = await group.read(100, 1);
    expect(await group.fail(pending!.entry, { done: [], reason: 'no mail' })).toBe('retry');
    await group.leave();
    await eventually(() => expect(heard).toEqual([`${events} retries`]));
  } finally {
    subscriber.disconnect();
    await store.close();
  }
});

it.each([
  [
    'waits for events is alive for the others from one look at a partition to the next',
    RULES.lease + PACE.pollInterval,
  ],
  ['is too busy for looks, with other partitions, keeps what it wants', 5 * RULES.lease],
])('an instance that %s', async (_, idle) => {
  const store = await Store.openSteppable({ partitions: 2 });
  try {
    const { client, partitions } = store;
    const [first, second] = [memberOf(store, 'first'), memberOf(store, 'second')];
    await first.ensure();
    await first.register({ names: ['Mails.send'], types: ['created'] });
    // It looks once per lease, as soon as it polls.
    await store.server.stepClock(idle);
    expect(await second.register({ names: ['Audit.write'], types: ['expired'] })).toEqual(['Mails.send']);
    const wanted = await Promise.all(partitions.all.map((keys) => client.hget(keys.wanted, GROUP)));
    expect(wanted).toEqual(['expired created', 'expired created']);
  } finally {
    await store.close();
  }
});
