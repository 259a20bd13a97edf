import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { FailureLog } from '../logging/failure.log.js';
import { logger } from '../logging/redis-session.logger.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { SortedSetExpirationStore } from './sorted-set-expiration.store.js';
import { SweepCounter, type SweepResult } from './sweep.counter.js';

/** What the poller needs to know of signals. */
export type EndSignals = Pick<PartitionSignals, 'onSignal' | 'heardSince'>;

// Milliseconds between two looks at a partition, however often sessions are due there.
const SHORTEST_WAIT = 100;
// No session ends sooner after its creation.
const LONGEST_WAIT = 1000;
// Signals tell of every end before that: see scripts/library/join.lua.
const LONGEST_WAIT_WITH_SIGNALS = 60_000;
// After an error, doubled with each further one. The cleanup job looks as well.
const FIRST_BACK_OFF = 1000;
const LONGEST_BACK_OFF = 60_000;

/** When to look at a partition again; monotonic times. */
interface Look {
  /** When the last look began. */
  begun: number;
  /** When to look again at the latest; earlier where no signal would tell of new sessions. */
  next: number;
  /** The number of errors since the last look that succeeded. */
  failures: number;
  running: Promise<void> | undefined;
}

/**
 * Looks at the sorted set of each partition when the next session there is due, and claims what has ended. Any number of
 * instances may do so. A partition whose node does not reply holds up no other one.
 */
@Injectable()
export class DueSessionPoller {
  readonly #store: SortedSetExpirationStore;
  readonly #looks: ReadonlyMap<SessionKeys, Look>;
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog(
    'The search for sessions that are due failed and will run again',
    'The search for sessions that are due works again',
  );
  #isActive = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    @InjectConnection('background') client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) scripts: Pick<SessionScripts, 'claimDue' | 'claimExpired'>,
    @Inject(SessionPartitions) { all }: Pick<SessionPartitions, 'all'>,
    @Inject(REDIS_SESSION_OPTIONS) { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(BackgroundLimiter) limiter: BackgroundLimiter,
    @Inject(PartitionSignals) private readonly signals: EndSignals,
  ) {
    this.#store = new SortedSetExpirationStore(client, scripts, batchSize, limiter);
    this.#looks = new Map(all.map((keys) => [keys, { begun: -Infinity, next: 0, failures: 0, running: undefined }]));
  }

  start(): void {
    this.#isActive = true;
    this.signals.onSignal((keys, signal) => {
      if (signal === 'missed') this.#hurry(keys, 0);
      else if (signal.startsWith('end ')) this.#hurry(keys, Number(signal.slice('end '.length)) + 1);
    });
    this.#schedule();
  }

  /** Resolves when the calls in flight have their replies. */
  async stop(): Promise<void> {
    this.#isActive = false;
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await Promise.all([...this.#looks.values()].map(async ({ running }) => running));
  }

  /** Looks at every partition now. */
  async runOnce(): Promise<SweepResult> {
    const tally = new SweepCounter(false);
    const { signal } = this.#stopping;
    await Promise.all([...this.#looks.keys()].map((keys) => this.#store.claimIn(keys, tally, { signal })));
    tally.report(signal);
    return tally.result;
  }

  /** Looks at a partition in so many milliseconds at the latest. */
  #hurry(keys: SessionKeys, wait: number): void {
    const look = this.#looks.get(keys);
    const at = performance.now() + wait;
    if (!look || at >= look.next) return;
    look.next = at;
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (!this.#isActive) return;
    const waiting = [...this.#looks].filter(([, { running }]) => !running);
    const next = Math.min(...waiting.map(([keys, look]) => this.#dueAt(keys, look)));
    // Signals may not be heard any more by then.
    const wait = Math.min(LONGEST_WAIT, Math.max(0, next - performance.now()));
    this.#timer = setTimeout(() => this.#lookAtDue(), wait).unref();
  }

  #lookAtDue(): void {
    const now = performance.now();
    for (const [keys, look] of this.#looks) {
      if (look.running || this.#dueAt(keys, look) > now) continue;
      look.running = this.#look(keys, look).finally(() => {
        look.running = undefined;
        this.#schedule();
      });
    }
    this.#schedule();
  }

  #dueAt(keys: SessionKeys, { begun, next, failures }: Look): number {
    if (failures > 0) return begun + Math.min(FIRST_BACK_OFF * 2 ** (failures - 1), LONGEST_BACK_OFF);
    const longest = this.signals.heardSince(keys) <= begun ? LONGEST_WAIT_WITH_SIGNALS : LONGEST_WAIT;
    return Math.max(Math.min(next, begun + longest), begun + SHORTEST_WAIT);
  }

  /** Never rejects. */
  async #look(keys: SessionKeys, look: Look): Promise<void> {
    const tally = new SweepCounter(false);
    const { signal } = this.#stopping;
    look.begun = performance.now();
    // Signals during the look bring the next one forward.
    look.next = Infinity;
    try {
      const next = await this.#store.claimIn(keys, tally, { signal });
      if (next !== undefined) look.next = Math.min(look.next, performance.now() + next);
      look.failures = 0;
      // While one partition fails, the others still succeed.
      if ([...this.#looks.values()].every(({ failures }) => failures === 0)) this.#failures.succeeded();
      tally.report(signal);
      const { late } = tally.result;
      if (late > 0) logger.log(`Caught up with ${late} sessions that had ended unnoticed`);
    } catch (error) {
      look.failures++;
      if (!signal.aborted) this.#failures.failed(error);
    }
  }
}
