import { Inject, Injectable } from '@nestjs/common';
import { isWellFormedIdOrToken, shownError } from '@nest-session/core/internal';
import type { SessionChange, WriteReply } from '@nest-session/core/store';
import {
  BackgroundLimiter,
  type BackgroundService,
  type Claim,
  FailureLog,
  InjectConnection,
  logger,
  settledWithin,
  untilSound,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import type { SessionTimer } from '../timers/session-timer.js';
import { tracedClaims } from './session-expiration.sweeper.js';

// Calls of the timer at a time, of about 1 KB: a timer that does not respond must not fill the memory.
const MOST_CALLS = 10_000;
// Milliseconds. A key exists until the millisecond after its end, and an early question has to be repeated.
const SLACK = 1;
// A day in milliseconds. Some timers cannot wait longer.
const LONGEST_DELAY = 86_400_000;
// Milliseconds that a timer waits for an answer.
const PATIENCE = 5000;
// The replies of PTTL for a key without an end, and for one that has just ended.
const [ENDLESS, NO_KEY] = [-1, -2];

interface Question {
  readonly answer: Promise<number | undefined>;
  /** Redis may answer when nobody waits any more. */
  isAwaited: boolean;
}

interface Batch {
  readonly ids: string[];
  readonly claims: Promise<Claim[]>;
}

/** Tells the application's timer when to ask about which session. The answer to an early question says when next. */
@Injectable()
export class TimedSessions implements BackgroundService {
  readonly #timer: SessionTimer | undefined;
  readonly #failures = new FailureLog(
    'The timer of `expirations` fails, so the cleanup job has to find the sessions that it misses',
    'The timer of `expirations` works again',
  );
  #calls = 0;
  readonly #questions = new Map<string, Question>();
  /** Those that still gather ids. */
  readonly #batches = new Map<SessionKeys, Batch>();
  readonly #stopping = new AbortController();
  #hasWarned = false;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {
    this.#timer = options.expirations.timer;
  }

  get hasTimer(): boolean {
    return this.#timer !== undefined;
  }

  /** Waits for no longer than the command timeout. */
  async start(): Promise<void> {
    const { commandTimeout } = this.options;
    const started = Promise.resolve(this.#timer?.start((id) => this.#ask(id)));
    if (await settledWithin(commandTimeout, started)) return started;
    logger.warn(
      `The timer of \`expirations\` has not started within ${commandTimeout} ms; the application starts without it, and ` +
        'the cleanup job finds the sessions that it misses',
    );
    started.catch((error: unknown) =>
      logger.error(`The timer of \`expirations\` could not be started: ${shownError(error)}`),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    try {
      await this.#timer?.stop();
    } catch (error) {
      logger.warn(`The timer of \`expirations\` could not be stopped: ${shownError(error)}`);
    }
  }

  /** Passes on the reply to a change, which may begin a session or change its end. */
  async following(change: SessionChange, reply: Promise<WriteReply>): Promise<WriteReply> {
    const { outcome } = await reply;
    const { id } = change;
    if (change.kind === 'create' && outcome === 'created') this.begin(id);
    if (change.kind === 'delete' && outcome === 'deleted') void this.#call((timer) => timer.cancel(id));
    if (change.kind === 'update' && outcome === 'saved') {
      const { newId = id, maxInactiveInterval, absoluteTimeout } = change;
      if (newId !== id || maxInactiveInterval !== undefined || absoluteTimeout !== undefined)
        void this.#call(async (timer) => {
          await timer.cancel(id);
          return this.#schedule(timer, newId);
        });
    }
    return reply;
  }

  begin(id: string): void {
    void this.#call((timer) => this.#schedule(timer, id));
  }

  /** In how many milliseconds to ask about a session; undefined if it never ends. */
  async delayOf(id: string): Promise<number | undefined> {
    const left = await this.client.pttl(this.partitions.of(id).shadow(id));
    if (left === ENDLESS) return undefined;
    return left === NO_KEY ? 0 : Math.min(left + SLACK, LONGEST_DELAY);
  }

  async #schedule(timer: SessionTimer, id: string): Promise<boolean> {
    const delay = await this.delayOf(id);
    if (delay === undefined) return false;
    await timer.schedule(id, delay);
    return true;
  }

  /** `call` resolves to true if the timer has scheduled something. A cancellation may succeed without its server. */
  async #call(call: (timer: SessionTimer) => Promise<boolean | void>): Promise<void> {
    if (!this.#timer) return;
    if (this.#calls >= MOST_CALLS)
      return this.#failures.failed(new Error(`${MOST_CALLS} calls still wait for a reply`));
    this.#calls++;
    try {
      const hasScheduled = await call(this.#timer);
      // An overloaded timer answers some calls. It has recovered when no other one is open.
      if (hasScheduled && this.#calls === 1) this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
    this.#calls--;
  }

  async #ask(id: string): Promise<number | undefined> {
    if (!isWellFormedIdOrToken(id)) {
      if (!this.#hasWarned) logger.warn(FOREIGN_IDS);
      this.#hasWarned = true;
      return undefined;
    }
    const open = this.#questions.get(id);
    // Of two that ask at the same time, one goes on: a session that was scheduled twice is not so for ever.
    if (open?.isAwaited) return undefined;
    const question = open ?? { answer: this.#answer(id), isAwaited: true };
    question.isAwaited = true;
    this.#questions.set(id, question);
    if (await settledWithin(PATIENCE, question.answer)) return question.answer;
    question.isAwaited = false;
    throw new Error(`Redis does not reply within ${PATIENCE} ms`);
  }

  async #answer(id: string): Promise<number | undefined> {
    try {
      const claim = await this.#claim(this.partitions.of(id), id);
      return claim?.outcome === 'alive' ? await this.delayOf(id) : undefined;
    } finally {
      this.#questions.delete(id);
    }
  }

  /** Many claims in one call cost Redis a third of what they cost one by one. */
  async #claim(partition: SessionKeys, id: string): Promise<Claim | undefined> {
    const batch = this.#batches.get(partition) ?? this.#open(partition);
    const place = batch.ids.push(id) - 1;
    if (batch.ids.length >= this.options.batchSize) this.#batches.delete(partition);
    return (await batch.claims)[place];
  }

  /** It gathers ids until the limiter lets it go. */
  #open(partition: SessionKeys): Batch {
    const ids: string[] = [];
    const send = () => {
      if (this.#batches.get(partition) === batch) this.#batches.delete(partition);
      const members = ids.map((id) => partition.memberOf(id));
      return this.scripts.claimExpired(partition, members);
    };
    const claim = () => tracedClaims('timer', this.partitions, () => this.limiter.run(send, partition.prefix));
    // The timer may ask again much later than Redis is sound.
    const batch: Batch = { ids, claims: untilSound(claim, this.#stopping.signal) };
    this.#batches.set(partition, batch);
    return batch;
  }
}

const FOREIGN_IDS =
  'The timer of `expirations` asks about ids that no session can have; they are ignored: do other programs use its queue?';
