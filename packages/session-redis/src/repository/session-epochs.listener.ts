import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { PartitionSignals } from '../connection/partition-signals.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { settledWithin } from '../timing/settled-within.js';
import type { SessionEpochs } from './session-epochs.js';

/** What the listener needs of the signals. */
export type EpochSignals = Pick<PartitionSignals, 'onSignal' | 'onConfirmation' | 'heardSince'>;

// Milliseconds. Between two questions for an epoch, and for one of which a signal would tell.
const INTERVAL = 1000;
const SLOW_INTERVAL = 300_000;

/**
 * Keeps the epochs that loads compare with up to date: by the signals of a partition, else by asking once a second. Where
 * this fails, each load asks.
 */
export class SessionEpochsListener {
  readonly #loop = new PollingLoop('The look at the epochs', INTERVAL, () => this.#look());
  /** The partitions whose epoch was asked for after their signals were heard, and when: monotonic time. */
  readonly #followed = new Map<SessionKeys, number>();
  /** The last question for the epoch of each partition whose node has not replied yet. */
  readonly #asked = new Map<SessionKeys, object>();

  constructor(
    private readonly client: Redis,
    private readonly partitions: readonly SessionKeys[],
    private readonly epochs: SessionEpochs,
    private readonly signals: EpochSignals,
  ) {
    signals.onSignal((keys, signal) => {
      if (signal !== 'missed' && signal !== 'epoch') return;
      this.#followed.delete(keys);
      void this.#ask(keys);
    });
    signals.onConfirmation((confirmed, since) => {
      for (const keys of confirmed) if (this.#followed.has(keys)) this.epochs.confirm(keys, since);
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when the calls in flight have their replies. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<void> {
    const due = this.partitions.filter((keys) => !this.#asked.has(keys) && this.#isDue(keys));
    await settledWithin(INTERVAL, Promise.all(due.map((keys) => this.#ask(keys))));
  }

  #isDue(keys: SessionKeys): boolean {
    const askedAt = this.#followed.get(keys);
    if (
      askedAt === undefined ||
      askedAt < this.signals.heardSince(keys) ||
      performance.now() - askedAt >= SLOW_INTERVAL
    )
      return true;
    // Another instance may end the last session.
    return this.epochs.pending(keys) !== undefined;
  }

  /** Never rejects. */
  async #ask(keys: SessionKeys): Promise<void> {
    const askedAt = performance.now();
    const question = {};
    const isLast = () => this.#asked.get(keys) === question;
    this.#asked.set(keys, question);
    try {
      await this.epochs.ask(this.client, keys);
      // A signal has come since then: only the answer to the next question may be confirmed.
      if (!isLast()) return;
    } catch {
      return;
    } finally {
      if (isLast()) this.#asked.delete(keys);
    }
    // Not when a signal may have been missed since then.
    if (this.signals.heardSince(keys) <= askedAt) this.#followed.set(keys, askedAt);
  }
}
