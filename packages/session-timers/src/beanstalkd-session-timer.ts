import { setTimeout as pause } from 'node:timers/promises';
import { OptionReader } from '@nest-session/core/internal';
import type { AskAboutSession, SessionTimer } from '@nest-session/redis';
import { FailureLog } from '@nest-session/redis-events/internal';
import jackd from 'jackd';
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

// Milliseconds between two attempts to connect, and until the next question when Redis did not reply.
const RECONNECTION = 1000;
const RETRY = 5000;
// Milliseconds that an instance keeps a job and waits itself, because beanstalkd counts whole seconds.
const LONGEST_HOLD = 100;
// As many as one call of the script claims.
const BATCH_SIZE = 50;

/** Lets beanstalkd decide when to ask about a session. That about a renewed one comes up to a second late. */
export class BeanstalkdSessionTimer implements SessionTimer {
  readonly #address: Required<BeanstalkdSessionTimerOptions>;
  readonly #failures = new FailureLog(
    'beanstalkd does not report ended sessions, so the cleanup job has to find them',
    'beanstalkd reports ended sessions again',
  );
  #stopping = new AbortController();
  /** The connection for everything except reservations, which block a connection. */
  #commands: Promise<BeanstalkdConnection> | undefined;
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
  }

  start(ask: AskAboutSession): void {
    if (this.#consumer) throw new SharedTimerError('BeanstalkdSessionTimer');
    this.#stopping = new AbortController();
    this.#consumer = this.#consume(ask);
  }

  async schedule(id: string, delay: number): Promise<void> {
    const commands = await this.#commands;
    if (!commands) throw new Error('The timer was not started');
    await commands.put(id, seconds(delay));
  }

  /** beanstalkd cancels by the number of a job, and to ask once about what has ended costs less than to keep these. */
  async cancel(_id: string): Promise<void> {}

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
    this.#commands = BeanstalkdConnection.open(this.#address);
    const commands = await this.#commands;
    try {
      const reservations = await BeanstalkdConnection.open(this.#address);
      void commands.lost.then((reason) => reservations.close(reason));
      this.#failures.succeeded();
      while (!this.#stopping.signal.aborted) {
        const jobs = await this.#reserve(reservations);
        await Promise.all(jobs.map((job) => this.#finish(reservations, job, ask)));
      }
    } finally {
      // That of the reservations ends with it.
      commands.close();
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

  /** If this instance ends before there is an answer, another instance gets the job. */
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
}

/** Rounds up, because an early question has to be repeated, but for the time that an instance waits itself. */
function seconds(milliseconds: number): number {
  return Math.max(0, Math.ceil((milliseconds - LONGEST_HOLD) / 1000));
}

function tubeProblem(tube: string): string | undefined {
  const isName = /^[\w+/;.$()][\w+/;.$()-]{0,199}$/.test(tube);
  return isName ? undefined : 'must have 1 to 200 letters, digits and `-+/;.$_()`, and not begin with `-`';
}

/** No other connection gets it until this one ends or `TIME_TO_RUN` has passed. */
interface ReservedJob {
  readonly job: string;
  readonly text: string;
}

// Seconds.
const TIME_TO_RUN = 60;
const LONGEST_WAIT = 10;
// Milliseconds that beanstalkd may take for a reply, not counting the wait for a job.
const REPLY = 5000;
// Most urgent to least urgent: 0 to 2^32 - 1.
const PRIORITY = 1024;
// The longest name of a tube has 200 bytes, and our jobs are shorter.
const LONGEST_TEXT = 300;

// By the type declarations of jackd, the class is a property of its module. In fact the module is the class.
const JackdClient = jackd as unknown as typeof jackd.JackdClient;

interface Call {
  readonly deadline: number;
  fail(error: Error): void;
}

/** A call fails when beanstalkd takes too long. Reserve on one that does nothing else: jackd mixes replies up. */
export class BeanstalkdConnection {
  readonly #client = new JackdClient();
  readonly #calls = new Set<Call>();
  readonly #watch: NodeJS.Timeout;
  #loss: Error | undefined;
  #tellLoss!: (loss: Error) => void;
  /** Resolves to the reason when the connection ends. */
  readonly lost = new Promise<Error>((resolve) => (this.#tellLoss = resolve));

  private constructor({ host, port }: Required<BeanstalkdSessionTimerOptions>) {
    const lose = (reason: string) => this.#lose(new Error(`beanstalkd at ${host}:${port} ${reason}`));
    this.#client.socket.on('error', ({ message }) => lose(`cannot be reached: ${message}`));
    this.#client.socket.on('close', () => lose('closed the connection'));
    this.#watch = setInterval(() => {
      const now = performance.now();
      for (const { deadline } of this.#calls) if (deadline < now) return lose('does not reply');
    }, REPLY / 5).unref();
  }

  static async open(address: Required<BeanstalkdSessionTimerOptions>): Promise<BeanstalkdConnection> {
    const connection = new BeanstalkdConnection(address);
    const { host, port, tube } = address;
    try {
      await connection.#call(() => connection.#client.connect({ host, port }));
      connection.#client.socket.setNoDelay(true);
      await connection.#call(() => connection.#client.use(tube));
      await connection.#call(() => connection.#client.watch(tube));
      if (tube !== 'default') await connection.#call(() => connection.#client.ignore('default'));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Schedules a job. `delay`: whole seconds. */
  async put(text: string, delay: number): Promise<void> {
    await this.#call(() => this.#client.put(text, { delay, priority: PRIORITY, ttr: TIME_TO_RUN }));
  }

  /** A job that is due; undefined if there is none now or, with `waits`, after a while. */
  async reserve({ waits }: { readonly waits: boolean }): Promise<ReservedJob | undefined> {
    const seconds = waits ? LONGEST_WAIT : 0;
    const found = await this.#call(
      () => unlessReplied(/^(TIMED_OUT|DEADLINE_SOON)$/, this.#client.reserveWithTimeout(seconds)),
      seconds * 1000,
    );
    return found && { job: found.id, text: found.payload.toString().slice(0, LONGEST_TEXT) };
  }

  /** Of a reserved or delayed job, also if another connection has it by now. */
  async delete(job: string): Promise<void> {
    await this.#call(() => unlessReplied(/^NOT_FOUND$/, this.#client.delete(job)));
  }

  /** Gives a reserved job back for `delay` whole seconds, also if another connection has it by now. */
  async release(job: string, delay: number): Promise<void> {
    await this.#call(() => unlessReplied(/^NOT_FOUND$/, this.#client.release(job, { delay, priority: PRIORITY })));
  }

  /** Open calls fail with this error, and beanstalkd gives the reserved jobs to others. */
  close(reason = new Error('The connection to beanstalkd is closed')): void {
    this.#lose(reason);
  }

  #call<T>(send: () => Promise<T>, wait = 0): Promise<T> {
    if (this.#loss) return Promise.reject(this.#loss);
    return new Promise((resolve, fail) => {
      const call: Call = { deadline: performance.now() + wait + REPLY, fail };
      this.#calls.add(call);
      const done = () => this.#calls.delete(call);
      send().then(resolve, fail).finally(done);
    });
  }

  #lose(loss: Error): void {
    this.#loss ??= loss;
    clearInterval(this.#watch);
    this.#client.socket.destroy();
    for (const { fail } of this.#calls) fail(this.#loss);
    this.#calls.clear();
    this.#tellLoss(this.#loss);
  }
}

/** Resolves to undefined if beanstalkd replied with such a word, which jackd throws as an error. */
function unlessReplied<T>(word: RegExp, reply: Promise<T>): Promise<T | undefined> {
  return reply.catch((error: unknown) => {
    if (error instanceof Error && word.test(error.message)) return undefined;
    throw error;
  });
}
