import { setTimeout as pause } from 'node:timers/promises';
import { OptionReader } from '@nest-session/core/internal';
import type { AskAboutSession, SessionTimer } from '@nest-session/redis';
import { FailureLog } from '@nest-session/redis-events/internal';
import { type BeanstalkdAddress, BeanstalkdConnection, type ReservedJob } from './beanstalkd.connection.js';
import { SharedTimerError } from './shared-timer.error.js';

/** The options of a BeanstalkdSessionTimer. */
export interface BeanstalkdSessionTimerOptions {
  /** @default 'localhost' */
  readonly host?: string;
  /** @default 11300 */
  readonly port?: number;
  /** The tube for the jobs. Each namespace of sessions needs its own tube. @default 'session-ends' */
  readonly tube?: string;
}

// Milliseconds between two attempts to connect.
const RECONNECTION = 1000;
// Milliseconds after which to ask again when Redis did not reply.
const RETRY = 5000;
// Milliseconds that an instance keeps a job and waits itself, because beanstalkd counts whole seconds.
const LONGEST_HOLD = 100;
// Jobs that one instance asks about at a time. One call of the script claims as many.
const BATCH_SIZE = 50;
// Number of sessions. Each takes about 150 bytes.
const MOST_REMEMBERED = 10_000;

/**
 * Uses beanstalkd to decide when to ask about a session. All instances reserve jobs from one tube, and each job holds
 * the id of a session. beanstalkd counts whole seconds, so the question about a renewed session comes up to a second
 * late.
 */
export class BeanstalkdSessionTimer implements SessionTimer {
  readonly #address: BeanstalkdAddress;
  readonly #failures: FailureLog;
  #stopping = new AbortController();
  /** The connection for everything except reservations, which block a connection. */
  #commands: Promise<BeanstalkdConnection> | undefined;
  /** The jobs of sessions that this connection has scheduled, the oldest first. */
  readonly #jobs = new Map<string, string>();
  #consumer: Promise<void> | undefined;
  /** The connection while it waits for a job. */
  #waiting: BeanstalkdConnection | undefined;

  /** Connects when the application starts. @throws InvalidSessionOptionsError that names all problems at once */
  constructor(options: BeanstalkdSessionTimerOptions = {}) {
    const reader = new OptionReader('BeanstalkdSessionTimer', options);
    this.#address = {
      host: reader.text('host', 'localhost', (host) => (host === '' ? 'must not be empty' : undefined)),
      port: reader.integer('port', 11_300, { atLeast: 1, atMost: 65_535 }),
      tube: reader.text('tube', 'session-ends', tubeProblem),
    };
    reader.finish();
    this.#failures = new FailureLog(
      'beanstalkd does not report ended sessions, so the cleanup job has to find them',
      'beanstalkd reports ended sessions again',
    );
  }

  start(ask: AskAboutSession): void {
    if (this.#consumer) throw new SharedTimerError('BeanstalkdSessionTimer');
    this.#stopping = new AbortController();
    this.#consumer = this.#consume(ask);
  }

  async schedule(id: string, delay: number): Promise<void> {
    const commands = await this.#commands;
    if (!commands) throw new Error('The timer was not started');
    this.#remember(id, await commands.put(id, seconds(delay)));
  }

  async cancel(id: string): Promise<void> {
    const job = this.#jobs.get(id);
    if (job === undefined) return;
    this.#jobs.delete(id);
    await (await this.#commands)?.delete(job);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#waiting?.close();
    await this.#consumer;
    this.#consumer = undefined;
  }

  async #consume(ask: AskAboutSession): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#serve(ask).catch((error: unknown) => {
        if (!signal.aborted) this.#failures.failed(error);
      });
      await pause(RECONNECTION, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Hands out jobs until a connection is lost. */
  async #serve(ask: AskAboutSession): Promise<void> {
    // A restarted beanstalkd reuses the numbers of jobs that it has lost.
    this.#jobs.clear();
    this.#commands = BeanstalkdConnection.open(this.#address);
    const commands = await this.#commands;
    try {
      const reservations = await BeanstalkdConnection.open(this.#address);
      void commands.lost.then((reason) => reservations.close(reason));
      this.#failures.succeeded();
      await this.#handOut(reservations, ask);
    } finally {
      commands.close();
    }
  }

  async #handOut(reservations: BeanstalkdConnection, ask: AskAboutSession): Promise<void> {
    try {
      while (!this.#stopping.signal.aborted) {
        const jobs = await this.#reserve(reservations);
        await Promise.all(jobs.map((job) => this.#finish(reservations, job, ask)));
      }
    } finally {
      reservations.close();
    }
  }

  /** Waits for a job, and takes all jobs that are due with it. */
  async #reserve(connection: BeanstalkdConnection): Promise<ReservedJob[]> {
    this.#waiting = connection;
    let job = await connection.reserve({ waits: true });
    this.#waiting = undefined;
    const jobs: ReservedJob[] = [];
    while (job) {
      jobs.push(job);
      job = jobs.length < BATCH_SIZE ? await connection.reserve({ waits: false }) : undefined;
    }
    return jobs;
  }

  /** Keeps the job reserved until there is an answer. If this instance ends before that, another instance gets it. */
  async #finish(connection: BeanstalkdConnection, { job, text }: ReservedJob, ask: AskAboutSession): Promise<void> {
    const answer = () => ask(text).catch(() => RETRY);
    let delay = await answer();
    while (delay !== undefined && delay <= LONGEST_HOLD) {
      await pause(delay);
      delay = await answer();
    }
    if (delay === undefined) await connection.delete(job);
    else await connection.release(job, seconds(delay));
  }

  #remember(id: string, job: string): void {
    this.#jobs.delete(id);
    this.#jobs.set(id, job);
    if (this.#jobs.size <= MOST_REMEMBERED) return;
    const [oldest] = this.#jobs.keys();
    this.#jobs.delete(oldest!);
  }
}

/** Rounds up after the time that an instance waits itself, because an early question has to be repeated. */
function seconds(milliseconds: number): number {
  return Math.max(0, Math.ceil((milliseconds - LONGEST_HOLD) / 1000));
}

function tubeProblem(tube: string): string | undefined {
  const isName = /^[\w+/;.$()][\w+/;.$()-]{0,199}$/.test(tube);
  return isName ? undefined : 'must have 1 to 200 letters, digits and `-+/;.$_()`, and not begin with `-`';
}
