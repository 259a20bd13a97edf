import { setTimeout as pause } from 'node:timers/promises';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { EventConsumer } from '../../src/delivery/event.consumer.js';
import { toPendingEvent } from '../../src/delivery/consumer-group-member.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { toStreamEntry } from '../../src/scripts/stream/stream-entry.js';

LeakGuard.install();

type Parameters = ConstructorParameters<typeof EventConsumer>;

const [partition] = new SessionPartitions('nest:session', 2).all;
const eventAt = (position: string) => toPendingEvent(toStreamEntry(partition!, [position, []]));

/** A consumer with one place for two events. Each event is its position. */
class Instance {
  /** For how many events it has asked, each time. */
  readonly counts: number[] = [];
  readonly data = new Gate();
  readonly handlers = new Gate();
  readonly #unread = [eventAt('1-0'), eventAt('2-0')];
  readonly #stopped = new AbortController();
  readonly #consumer: EventConsumer<string>;

  constructor() {
    const group = {
      name: 'default',
      hasSeveralPartitions: true,
      isSettled: true,
      rules: { mostAbandoned: 5, attempts: 10, lease: 30_000 },
      want: async () => undefined,
      ensure: async () => undefined,
      register: async () => undefined,
      renew: async () => undefined,
      leave: async () => undefined,
      acknowledge: async () => undefined,
      pickUpEvents: async () => [],
      stopReading: async () => this.#stopped.abort(),
      concerns: () => true,
      read: (count: number) => this.#read(count),
    };
    const handlers = {
      hasHandlers: true,
      handlerNames: [],
      wantedTypes: () => [],
      ready: async () => undefined,
      idle: async () => undefined,
      giveUp: () => undefined,
      // Those of the second event take long.
      dispatch: async (event: string) => (event === '2-0' ? this.handlers.pass() : undefined),
    };
    const producer = { handlers, missingHandlerOf: () => undefined };
    // The node of the first event does not reply for a while.
    const loader = {
      load: async ({ position }: { position: string }) => {
        if (position === '1-0') await this.data.pass();
        return position;
      },
    };
    const options = { consume: true, concurrency: 1, pollInterval: 60_000, wishRenewal: 60_000, shutdownTimeout: 1000 };
    const all = [group, producer, loader, options, { onOpen: () => undefined }];
    this.#consumer = new EventConsumer(...(all as unknown as Parameters)) as EventConsumer<string>;
  }

  start(): Promise<void> {
    return this.#consumer.start();
  }

  stop(): Promise<void> {
    for (const gate of [this.data, this.handlers]) gate.open();
    return this.#consumer.stop();
  }

  async #read(count: number) {
    this.counts.push(count);
    const event = this.#unread.shift();
    if (event) return [event];
    await pause(60_000, undefined, { signal: this.#stopped.signal, ref: false }).catch(() => undefined);
    return [];
  }
}

it('a place that is taken again by the event of a node which replies at last is not free for a new one', async () => {
  // The reply comes at another moment in each: between the end of the second event and the next read.
  const instances = Array.from({ length: 30 }, () => new Instance());
  await Promise.all(instances.map((instance) => instance.start()));
  await Promise.all(instances.map(({ handlers }) => handlers.reached()));
  for (const [turns, { data, handlers }] of instances.entries()) {
    handlers.open();
    for (let i = 0; i < turns; i++) await Promise.resolve();
    data.open();
    await pause(1);
  }
  const counts = instances.map((instance) => instance.counts);
  await Promise.all(instances.map((instance) => instance.stop()));
  expect(counts).toEqual(instances.map(() => [1, 1, 1]));
});
