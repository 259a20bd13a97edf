import { Inject, Injectable } from '@nestjs/common';
import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import {
  type BackgroundService,
  InjectConnection,
  PartitionSignals,
  settledWithin,
} from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { EPOCH_INTERVAL, SessionEpochs } from './session-epochs.js';

/** The signals that the listener needs. */
export type EpochSignals = Pick<PartitionSignals<SessionKeys>, 'onSignal' | 'onConfirmation' | 'heardSince'>;

// Milliseconds between two reads of an epoch whose changes signals report.
const SLOW_INTERVAL = 300_000;

/**
 * Keeps the epochs up to date that loads compare with. It follows the signals of a partition, or reads the epoch once a
 * second. If both fail, each load reads the epoch.
 */
@Injectable()
export class SessionEpochsListener implements BackgroundService {
  readonly #loop = new PollingLoop('The check of the epochs', EPOCH_INTERVAL, () => this.#look());
  /** The partitions whose epoch was read after their signals arrived, with the monotonic time of the read. */
  readonly #followed = new Map<SessionKeys, number>();
  /** The last read of each partition's epoch that its node has not replied to yet. */
  readonly #asked = new Map<SessionKeys, object>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'all'>,
    @Inject(SessionEpochs) private readonly epochs: SessionEpochs,
    @Inject(PartitionSignals) private readonly signals: EpochSignals,
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

  /** Resolves when all open calls have their replies. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<void> {
    const due = this.partitions.all.filter((keys) => !this.#asked.has(keys) && this.#isDue(keys));
    await settledWithin(EPOCH_INTERVAL, Promise.all(due.map((keys) => this.#ask(keys))));
  }

  #isDue(keys: SessionKeys): boolean {
    const askedAt = this.#followed.get(keys);
    if (
      askedAt === undefined ||
      askedAt < this.signals.heardSince(keys) ||
      performance.now() - askedAt >= SLOW_INTERVAL
    )
      return true;
    // Another instance may end the last session, so keep reading.
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
      // A signal has arrived since then, so only the reply to the next read may be confirmed.
      if (!isLast()) return;
    } catch {
      return;
    } finally {
      if (isLast()) this.#asked.delete(keys);
    }
    // If a signal may have been missed since then, the partition needs another read.
    if (this.signals.heardSince(keys) <= askedAt) this.#followed.set(keys, askedAt);
  }
}
