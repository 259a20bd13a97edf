import { Inject, Injectable } from '@nestjs/common';
import {
  BackgroundLimiter,
  type BackgroundService,
  FailureLog,
  isFaultOfServer,
  type KeyspaceHealth,
  type KeyspaceNotificationListener,
  type KeyspaceState,
  type KeyspaceSubscription,
  logger,
  RETRY,
  SweepCounter,
  untilSound,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import {
  BACKGROUND_SESSION_SCRIPTS,
  REDIS_SESSION_OPTIONS,
  SHADOW_KEY_LISTENER,
} from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { SessionExpirationSweeper, tracedClaims } from './session-expiration.sweeper.js';

// Milliseconds, at random: every instance hears every key event, and what one has claimed costs the others little.
const SHORTEST_COLLECTION = 50;
const LONGEST_COLLECTION = 100;

// About as many as are claimed in a second. With more of them a sweep is cheaper: the bucket shows what the others have
// claimed.
const MOST_COLLECTED = 10_000;

const MINUTE = 60_000;

/** Claims sessions at the key events of their shadow keys. The sweeper finds every session that it misses. */
@Injectable()
export class ExpiredSessionListener implements BackgroundService {
  #know!: (state: KeyspaceState) => void;
  /** Whether Redis announces expired sessions, as soon as that is known. */
  readonly firstState = new Promise<KeyspaceState>((resolve) => (this.#know = resolve));
  readonly #due = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog(
    'Expired sessions could not be claimed, and will be',
    'Expired sessions are claimed again',
  );
  #timer: NodeJS.Timeout | undefined;
  /** Listens to all expired keys, where Redis sends only those events and forbids CONFIG. */
  #substitute: KeyspaceSubscription | undefined;
  #claiming: Promise<void> = Promise.resolve();
  /** Whether there were sessions that it did not collect. */
  #hasMissed = false;
  #sweeping: Promise<void> | undefined;

  constructor(
    @Inject(SHADOW_KEY_LISTENER) private readonly notifications: KeyspaceNotificationListener,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(SessionExpirationSweeper) private readonly sweeper: Pick<SessionExpirationSweeper, 'pass'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {}

  /** Whether Redis announces expired sessions, or expired keys, which sessions are among. */
  get state(): KeyspaceState {
    return this.#substitute?.health.state === 'listening' ? 'listening' : this.notifications.health.state;
  }

  start(): void {
    // Not the channel of `expired`, which also carries the keys of all other applications: 300,000 at once overflow the
    // output buffer.
    this.#listen((health) => this.#report(health), this.partitions.shadows);
    this.notifications.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    this.#due.clear();
    await Promise.all([this.notifications.stop(), this.#claiming, this.#sweeping]);
  }

  #collect(shadow: string): void {
    const id = this.partitions.idOfShadow(shadow);
    if (id === undefined || this.#stopping.signal.aborted) return;
    this.#add(id);
    this.#schedule(SHORTEST_COLLECTION + Math.random() * (LONGEST_COLLECTION - SHORTEST_COLLECTION));
  }

  #add(id: string): void {
    if (this.#due.size < MOST_COLLECTED) this.#due.add(id);
    else {
      this.#hasMissed = true;
      this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined));
    }
  }

  #schedule(wait: number): void {
    if (this.#due.size === 0 || this.#stopping.signal.aborted) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#claiming = this.#claiming.then(() => this.#claim());
    }, wait).unref();
  }

  async #claim(): Promise<void> {
    const due = this.partitions.grouped([...this.#due]);
    this.#due.clear();
    const claims = await Promise.all(due.map(([partition, ids]) => this.#claimIn(partition, ids)));
    if (claims.every((hasSucceeded) => hasSucceeded)) this.#failures.succeeded();
  }

  /** Never rejects. What a server refuses is collected once more. */
  async #claimIn(partition: SessionKeys, ids: readonly string[]): Promise<boolean> {
    const members = ids.map((id) => partition.memberOf(id));
    const { batchSize } = this.options;
    try {
      for (let i = 0; i < members.length && !this.#stopping.signal.aborted; i += batchSize) {
        const batch = members.slice(i, i + batchSize);
        const claim = () => this.limiter.run(() => this.scripts.claimExpired(partition, batch), partition.prefix);
        await tracedClaims('key_event', this.partitions, claim);
      }
      return true;
    } catch (error) {
      this.#failed(error);
      if (isFaultOfServer(error)) for (const id of ids) this.#add(id);
      this.#schedule(RETRY);
      return false;
    }
  }

  async #sweep(): Promise<void> {
    try {
      while (this.#hasMissed && !this.#stopping.signal.aborted) {
        this.#hasMissed = false;
        await this.#sweepCurrentMinute();
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** What has just ended is in the bucket of the current minute, which is not due yet. Returns the number of claims. */
  async #sweepCurrentMinute(): Promise<number> {
    const { signal } = this.#stopping;
    let claimed = 0;
    const sweep = async () => {
      const tally = new SweepCounter(true);
      await this.sweeper.pass(tally, { ahead: MINUTE, signal }).finally(() => (claimed += tally.result.claimed));
      const fault = tally.failures.find(isFaultOfServer);
      if (fault !== undefined) throw fault;
      tally.report(signal);
    };
    await untilSound(sweep, signal, (error) => this.#failed(error));
    this.#failures.succeeded();
    return claimed;
  }

  #failed(error: unknown): void {
    if (!this.#stopping.signal.aborted) this.#failures.failed(error);
  }

  #report({ state, reason }: KeyspaceHealth): void {
    if (state === 'listening') {
      logger.log('Redis announces expired sessions');
      this.#know(state);
      void this.#substitute?.close();
      this.#substitute = undefined;
    } else if (reason !== undefined) {
      logger.warn(`Redis does not announce expired sessions; the cleanup job will find them: ${reason}`);
      if (state === 'silent' || state === 'refused') this.#substitute ??= this.#listenToAllKeys();
      else if (state !== 'connecting') this.#know(state);
    }
  }

  /** Works where operators have set `Ex`, as Spring Session and others require. */
  #listenToAllKeys(): KeyspaceSubscription {
    return this.#listen(({ state }) => {
      if (state === 'listening') logger.log('Redis announces expired keys, sessions among them');
      if (state !== 'connecting') this.#know(state);
    });
  }

  #listen(onHealth: (health: KeyspaceHealth) => void, keys?: string): KeyspaceSubscription {
    return this.notifications.listen({
      ...(keys !== undefined && { keys }),
      events: 'expired',
      canary: this.partitions.canaries,
      handler: ({ key }) => this.#collect(key),
      onGap: async () => {
        const claimed = await this.#sweepCurrentMinute();
        if (claimed > 0) logger.log(`Caught up with ${claimed} sessions that had ended unheard`);
      },
      onHealth,
    });
  }
}
