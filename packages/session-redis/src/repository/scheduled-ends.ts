import { Inject, Injectable } from '@nestjs/common';
import type { SessionChange, WriteReply } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { FailureLog } from '../logging/failure.log.js';
import type { SessionTimer } from '../timers/session-timer.js';

// Calls of the timer at a time, about 1 KB each. A timer that does not answer must not fill the memory.
const MOST_CALLS = 10_000;
// Milliseconds. A key of Redis is there until the millisecond after its end, and who asks early asks twice.
const SLACK = 1;
// Milliseconds, a day: far ends are too long for some timers. Whoever is asked early answers when to ask again.
const LONGEST_DELAY = 86_400_000;
// The replies of PTTL for a key without an end, and for one that is not there.
const [ENDLESS, NO_KEY] = [-1, -2];

/**
 * Tells the timer of the application, if it has one, when to ask about which session: when it begins, when it gets
 * another id, and when its timeouts change. Renewals change nothing: whoever asks early learns when to ask again. No
 * request waits for any of this.
 */
@Injectable()
export class ScheduledEnds {
  readonly #timer: SessionTimer | undefined;
  readonly #failures = new FailureLog(
    'The timer of `expirations` fails; the cleanup job will find the sessions that it misses',
    'The timer of `expirations` works again',
  );
  #calls = 0;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) { expirations }: Pick<ResolvedRedisSessionOptions, 'expirations'>,
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'of'>,
  ) {
    this.#timer = expirations.timer;
  }

  /** Whether the application has a timer. */
  get hasTimer(): boolean {
    return this.#timer !== undefined;
  }

  /** The reply to a change, which may begin a session or move its end. */
  following(change: SessionChange, reply: Promise<WriteReply>): Promise<WriteReply> {
    return this.#timer ? this.#follow(change, reply) : reply;
  }

  /** There is a new session. */
  begin(id: string): void {
    this.#call((timer) => this.#schedule(timer, id));
  }

  /** The milliseconds after which to ask about a session; undefined when it does not end. By Redis' clock. */
  async delayOf(id: string): Promise<number | undefined> {
    const left = await this.client.pttl(this.partitions.of(id).shadow(id));
    if (left === ENDLESS) return undefined;
    // Without the key, it has ended just now.
    return left === NO_KEY ? 0 : Math.min(left + SLACK, LONGEST_DELAY);
  }

  async #follow(change: SessionChange, reply: Promise<WriteReply>): Promise<WriteReply> {
    this.#heed(change, await reply);
    return reply;
  }

  #heed(change: SessionChange, { outcome }: WriteReply): void {
    const { id } = change;
    if (change.kind === 'create' && outcome === 'created') this.begin(id);
    if (change.kind === 'delete' && outcome === 'deleted') {
      this.#call(async (timer) => {
        await timer.cancel(id);
        return false;
      });
    }
    if (change.kind !== 'update' || outcome !== 'saved') return;
    const { newId = id, maxInactiveInterval, absoluteTimeout } = change;
    if (newId === id && maxInactiveInterval === undefined && absoluteTimeout === undefined) return;
    this.#call(async (timer) => {
      await timer.cancel(id);
      return this.#schedule(timer, newId);
    });
  }

  async #schedule(timer: SessionTimer, id: string): Promise<boolean> {
    const delay = await this.delayOf(id);
    if (delay === undefined) return false;
    await timer.schedule(id, delay);
    return true;
  }

  /** `call` resolves to whether the timer has scheduled something: it may cancel without its server. */
  #call(call: (timer: SessionTimer) => Promise<boolean>): void {
    if (!this.#timer) return;
    if (this.#calls >= MOST_CALLS) {
      this.#failures.failed(new Error(`${MOST_CALLS} calls have no answer`));
      return;
    }
    this.#calls++;
    void this.#settle(call, this.#timer);
  }

  async #settle(call: (timer: SessionTimer) => Promise<boolean>, timer: SessionTimer): Promise<void> {
    try {
      const hasScheduled = await call(timer);
      // Under more load than the timer can take, some calls succeed and others do not.
      if (hasScheduled && this.#calls === 1) this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
    this.#calls--;
  }
}
