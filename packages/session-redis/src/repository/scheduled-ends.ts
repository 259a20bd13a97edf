import { Inject, Injectable } from '@nestjs/common';
import type { SessionChange, WriteReply } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { FailureLog, InjectConnection } from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionTimer } from '../timers/session-timer.js';

// Calls of the timer at a time. Each takes about 1 KB, and a timer that does not respond must not fill the memory.
const MOST_CALLS = 10_000;
// Milliseconds. A key exists until the millisecond after its end, and an early question has to be repeated.
const SLACK = 1;
// A day in milliseconds. Some timers cannot wait longer. The answer to an early question says when to ask again.
const LONGEST_DELAY = 86_400_000;
// The replies of PTTL for a key without an end, and for one that is not there.
const [ENDLESS, NO_KEY] = [-1, -2];

/**
 * Tells the application's timer, if there is one, when to ask about which session. It does so when a session begins, is
 * rotated or gets other timeouts. A renewal needs no call, because the answer to an early question says when to ask
 * again. No request waits for the timer.
 */
@Injectable()
export class ScheduledEnds {
  readonly #timer: SessionTimer | undefined;
  readonly #failures = new FailureLog(
    'The timer of `expirations` fails, so the cleanup job has to find the sessions that it misses',
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

  /** Passes the reply to a change on. The change may begin a session or change its end. */
  following(change: SessionChange, reply: Promise<WriteReply>): Promise<WriteReply> {
    return this.#timer ? this.#follow(change, reply) : reply;
  }

  /** Schedules a new session. */
  begin(id: string): void {
    this.#call((timer) => this.#schedule(timer, id));
  }

  /** Returns the milliseconds by Redis' clock after which to ask about a session, or undefined if it never ends. */
  async delayOf(id: string): Promise<number | undefined> {
    const left = await this.client.pttl(this.partitions.of(id).shadow(id));
    if (left === ENDLESS) return undefined;
    // If the key is missing, the session has just ended.
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

  /**
   * @param call resolves to whether the timer has scheduled something. A cancellation may succeed without its server
   */
  #call(call: (timer: SessionTimer) => Promise<boolean>): void {
    if (!this.#timer) return;
    if (this.#calls >= MOST_CALLS) {
      this.#failures.failed(new Error(`${MOST_CALLS} calls still wait for a reply`));
      return;
    }
    this.#calls++;
    void this.#settle(call, this.#timer);
  }

  async #settle(call: (timer: SessionTimer) => Promise<boolean>, timer: SessionTimer): Promise<void> {
    try {
      const hasScheduled = await call(timer);
      // While the timer is overloaded, some calls succeed and others fail. It has recovered when no other call is open.
      if (hasScheduled && this.#calls === 1) this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
    this.#calls--;
  }
}
