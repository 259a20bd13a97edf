import { Inject, Injectable } from '@nestjs/common';
import { isWellFormedIdOrToken, shownError } from '@nest-session/core/internal';
import {
  BackgroundLimiter,
  type BackgroundService,
  type Claim,
  logger,
  settledWithin,
  untilSound,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { ScheduledEnds } from '../repository/scheduled-ends.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { foundInCall, tracedSweep } from './traced-sweep.js';

// Milliseconds that a timer waits for an answer.
const PATIENCE = 5000;

type ListenerOptions = Pick<ResolvedRedisSessionOptions, 'expirations' | 'batchSize' | 'commandTimeout'>;

/** What somebody asked about a session. */
interface Question {
  readonly answer: Promise<number | undefined>;
  /** Whether somebody waits for the answer. Redis may give it when nobody does any more. */
  isAwaited: boolean;
}

/** The claims of one partition. */
interface Claims {
  /** Those that wait for the last ones, and what will become of them. */
  next: { readonly ids: string[]; readonly claims: Promise<Claim[]> } | undefined;
  last: Promise<unknown>;
}

/**
 * Claims the sessions that the timer of the application asks about. A question about a session that is alive, has
 * ended long ago or never was does no harm.
 */
@Injectable()
export class TimedSessionListener implements BackgroundService {
  readonly #options: ListenerOptions;
  readonly #questions = new Map<string, Question>();
  readonly #claims = new Map<SessionKeys, Claims>();
  readonly #stopping = new AbortController();
  #hasWarned = false;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) options: ListenerOptions,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: Pick<SessionScripts, 'claimExpired'>,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'of' | 'namespace'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
    @Inject(ScheduledEnds) private readonly ends: Pick<ScheduledEnds, 'delayOf'>,
  ) {
    this.#options = options;
  }

  /** Resolves at the latest after the command timeout. @throws what the timer throws until then */
  async start(): Promise<void> {
    const { commandTimeout, expirations } = this.#options;
    const started = Promise.resolve(expirations.timer?.start((id) => this.#ask(id)));
    if (await settledWithin(commandTimeout, started)) return started;
    logger.warn(
      `The timer of \`expirations\` has not started within ${commandTimeout} ms; the application starts without it, and ` +
        'the cleanup job finds the sessions that it misses',
    );
    started.catch((error: unknown) =>
      logger.error(`The timer of \`expirations\` could not be started: ${shownError(error)}`),
    );
  }

  /** Resolves when the questions that are open have their answers. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    try {
      await this.#options.expirations.timer?.stop();
    } catch (error) {
      logger.warn(`The timer of \`expirations\` could not be stopped: ${shownError(error)}`);
    }
  }

  async #ask(id: string): Promise<number | undefined> {
    if (!isWellFormedIdOrToken(id)) {
      this.#warnOnce();
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
      return claim?.outcome === 'alive' ? await this.ends.delayOf(id) : undefined;
    } finally {
      this.#questions.delete(id);
    }
  }

  /** Many claims in one call cost Redis a third of what they cost one by one. */
  async #claim(partition: SessionKeys, id: string): Promise<Claim | undefined> {
    const claims = this.#claims.get(partition) ?? { next: undefined, last: Promise.resolve() };
    this.#claims.set(partition, claims);
    const batch = claims.next ?? this.#open(partition, claims);
    const place = batch.ids.push(id) - 1;
    // A full one takes no more.
    if (batch.ids.length >= this.#options.batchSize) claims.next = undefined;
    return (await batch.claims)[place];
  }

  #open(partition: SessionKeys, claims: Claims) {
    const ids: string[] = [];
    const replied = claims.last.then(() => {
      if (claims.next === batch) claims.next = undefined;
      const members = ids.map((id) => partition.memberOf(id));
      const claim = () => this.limiter.run(() => this.scripts.claimExpired(partition, members), partition.prefix);
      const sweep = () => tracedSweep('timer', this.partitions, claim, foundInCall);
      // The timer may ask again much later than Redis is sound.
      return untilSound(sweep, this.#stopping.signal);
    });
    const batch = { ids, claims: replied };
    claims.next = batch;
    claims.last = replied.catch(() => undefined);
    return batch;
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    logger.warn(
      'The timer of `expirations` asks about ids that no session can have; they are ignored: do other programs use ' +
        'its queue?',
    );
  }
}
