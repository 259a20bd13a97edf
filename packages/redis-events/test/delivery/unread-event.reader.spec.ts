import { jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { nameOf, type StreamEntry } from '../../src/scripts/stream/stream-entry.js';
import type { UnreadEventReader } from '../../src/delivery/partition-turns.js';
import { eventReader } from '../../../session-redis/test/support/event-reader.js';
import { HandSignals } from '../../../session-redis/test/support/hand-signals.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { Timers } from '../../../session-redis/test/support/timers.js';

LeakGuard.install();

const GROUP = 'default';
const HOUR = 3_600_000;

describe.each([1, 4])('a reader of %d partitions', (partitions) => {
  let store: Store;
  let client: Redis;
  let reader: UnreadEventReader;
  let signals: HandSignals;
  beforeAll(async () => {
    store = await Store.open({ partitions });
    client = store.client.duplicate();
  });
  beforeEach(async () => {
    await store.client.flushall();
    for (const { events } of store.partitions.all) await store.client.xgroup('CREATE', events, GROUP, '0', 'MKSTREAM');
    signals = new HandSignals();
    reader = eventReader(client, store.partitions, { group: GROUP, consumer: 'me' }, signals);
  });
  afterAll(async () => {
    client.disconnect();
    await store.close();
  });

  /** Records an event in a partition; its name. */
  async function record(partition: number): Promise<string> {
    const keys = store.partitions.all[partition]!;
    const position = await store.client.xadd(keys.events, '*', 'type', 'created', 'session', 's');
    // As the scripts do.
    signals.tell(keys, 'events');
    return nameOf({ partition: keys, position: position!, fields: [] });
  }

  /** Records as many events in each of some partitions. */
  async function recordIn(some: readonly number[], count: number): Promise<string[]> {
    const names: string[] = [];
    for (let i = 0; i < count; i++) for (const partition of some) names.push(await record(partition));
    return names;
  }

  /** Reads `times` times with `places` places; the entries of each read. */
  async function read(times: number, places: number): Promise<StreamEntry[][]> {
    const reads: StreamEntry[][] = [];
    for (let i = 0; i < times; i++) reads.push(await reader.read(places, HOUR));
    return reads;
  }

  const every = Array.from({ length: partitions }, (_, i) => i);
  const namesIn = (reads: readonly StreamEntry[][]) => reads.flat().map(nameOf).sort();

  it.each([1, 2, 3, 5, 8, 100])('returns each event once, and never more than %d at a time', async (places) => {
    const names = await recordIn(every, 10);
    const reads: StreamEntry[][] = [];
    // An empty partition would block for an hour; events of the others must not wait for that.
    while (reads.flat().length < names.length) reads.push(...(await read(1, places)));
    expect(Math.max(...reads.map(({ length }) => length))).toBeLessThanOrEqual(places);
    expect(namesIn(reads)).toEqual(names.sort());
  });

  it('fills all places', async () => {
    await recordIn(every, 24);
    expect((await read(3, 8)).map(({ length }) => length)).toEqual([8, 8, 8]);
  });

  it('returns events in time order', async () => {
    const names = await recordIn([...every, ...every.toReversed()], 3);
    const [entries] = await read(1, 100);
    const times = entries!.map(({ position }) => position.split('-').map(Number) as [number, number]);
    expect(times).toEqual(times.toSorted(([ms, sequence], [other, next]) => ms - other || sequence - next));
    expect(namesIn([entries!])).toEqual(names.sort());
  });

  it('with a single place, never blocks on one partition while another has an event', async () => {
    const reads = jest.spyOn(client, 'xreadgroup');
    for (const partition of every) {
      const names = await recordIn([partition], 3);
      const found: StreamEntry[] = [];
      while (found.length < names.length) found.push(...(await reader.read(1, HOUR)));
      expect(namesIn([found])).toEqual(names.sort());
    }
    const replies = await Promise.all(reads.mock.results.map(({ value }) => value as Promise<unknown>));
    const inVain = reads.mock.calls.filter((args, i) => (args as unknown[]).includes('BLOCK') && replies[i] === null);
    expect(inVain).toEqual([]);
    reads.mockRestore();
  });

  it.each([1, 3, 8])('waits for an event of any partition, with %d places', async (places) => {
    const untilFound = async () => {
      for (;;) {
        const found = await reader.read(places, HOUR);
        if (found.length > 0) return found;
      }
    };
    const timers = new Timers();
    timers.start();
    for (const partition of every) {
      const waiting = untilFound();
      if (partitions === 1) {
        await eventually(async () => expect(await store.client.info('clients')).toContain('blocked_clients:1'));
      }
      const name = await record(partition);
      expect((await waiting).map(nameOf)).toEqual([name]);
      expect(timers.left()).toEqual([]);
    }
    timers.stop();
  });

  it('reads what is in a partition after each failure there, without a signal', async () => {
    const heard = jest.spyOn(signals, 'heardSince').mockReturnValue(0);
    const keys = store.partitions.all.at(-1)!;
    expect(await reader.read(8, 1)).toEqual([]);
    for (let round = 1; round <= 2; round++) {
      await store.client.del(keys.events);
      await store.client.set(keys.events, 'foreign');
      signals.tell(keys, 'events');
      await expect(reader.read(8, HOUR)).rejects.toThrow('WRONGTYPE');
      await store.client.del(keys.events);
      await store.client.xgroup('CREATE', keys.events, GROUP, '0', 'MKSTREAM');
      await store.client.xadd(keys.events, '*', 'type', 'created', 'session', 's');
      expect(await reader.read(8, 500)).toHaveLength(1);
    }
    heard.mockRestore();
  });

  it('waits no longer than its timeout', async () => {
    for (let i = 0; i < 3; i++) expect(await reader.read(8, 1)).toEqual([]);
    for (let i = 0; i < 3 * partitions; i++) expect(await reader.read(1, 1)).toEqual([]);
  });
});
