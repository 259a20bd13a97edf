import { OptionReader } from '@nest-session/core/internal';
import type { AskAboutSession, SessionTimer } from '@nest-session/redis';
import { FailureLog, RETRY, settledWithin, untilSound } from '@nest-session/redis-events/internal';
import { type ConnectionOptions, DelayedError, type Job, Queue, Worker } from 'bullmq';
import { SharedTimerError } from './shared-timer.error.js';

/** The options of a BullMqSessionTimer. */
export interface BullMqSessionTimerOptions {
  /** The connection for BullMQ: options of ioredis, or your own client with `maxRetriesPerRequest: null`. */
  readonly connection: ConnectionOptions;
  /** Each namespace needs a queue of its own, on a Cluster with a hash tag. @default '{session-ends}' */
  readonly queue?: string;
}

// Milliseconds until the next question when Redis did not reply.
const NO_ANSWER = 5000;
// Milliseconds. Another instance gets the job of one that has ended after one to two times this long.
const LOCK = 10_000;
// Milliseconds between two attempts to connect.
const RECONNECTION = 500;
// Milliseconds for a call, and for jobs to finish at shutdown. A question takes no longer.
const PATIENCE = 5000;
// Milliseconds for a reply at shutdown.
const REPLY = 1000;
// As many sessions as one call of the script claims.
const CONCURRENCY = 50;
// So many instances may end with a job before BullMQ gives it up.
const MOST_STALLS = 1000;

/** Uses BullMQ to decide when to ask about a session, which has a delayed job. All instances work on one queue. */
export class BullMqSessionTimer implements SessionTimer {
  readonly #name: string;
  readonly #connection: ConnectionOptions;
  readonly #failures = new FailureLog(
    'BullMQ does not report ended sessions, so the cleanup job has to find them',
    'BullMQ reports ended sessions again',
  );
  #queue: Queue | undefined;
  #worker: Worker | undefined;
  #isRunning = false;
  #stopping = new AbortController();

  /** Connects when the application starts. @throws InvalidSessionOptionsError that names all problems at once */
  constructor(options: BullMqSessionTimerOptions) {
    const reader = new OptionReader('BullMqSessionTimer', options);
    const connection = reader.value('connection', isConnection, CONNECTION);
    this.#name = reader.text('queue', '{session-ends}', nameProblem);
    if (givesUp(connection)) reader.problem('Option `connection` needs `maxRetriesPerRequest: null` in a client.');
    if (options?.connection === undefined) reader.problem(`Option \`connection\` is missing: ${CONNECTION}.`);
    reader.finish();
    this.#connection = connection!;
  }

  start(ask: AskAboutSession): void {
    if (this.#isRunning) throw new SharedTimerError('BullMqSessionTimer');
    this.#isRunning = true;
    this.#stopping = new AbortController();
    // A call must fail instead of waiting until Redis is back, because nothing waits for it.
    const queue = this.#with({ enableOfflineQueue: false, maxRetriesPerRequest: 1 });
    this.#queue = new Queue(this.#name, queue);
    this.#worker = new Worker(this.#name, (job, token) => this.#process(job, token, ask), {
      ...this.#with({}),
      concurrency: CONCURRENCY,
      lockDuration: LOCK,
      stalledInterval: LOCK,
      maxStalledCount: MOST_STALLS,
      runRetryDelay: RETRY,
    });
    this.#queue.on('error', (error) => this.#failures.failed(error));
    this.#worker.on('error', (error) => this.#failures.failed(error));
  }

  async schedule(id: string, delay: number): Promise<void> {
    const job = { jobId: id, delay, removeOnComplete: true, removeOnFail: true };
    await this.#answered((queue) => queue.add('session-end', null, job));
  }

  async cancel(id: string): Promise<void> {
    // This leaves a job that is being worked on, and such a job needs no cancellation.
    await this.#answered((queue) => queue.remove(id));
  }

  /** Until its first connection, BullMQ would wait forever. */
  async #answered(call: (queue: Queue) => Promise<unknown>): Promise<void> {
    if (!this.#queue) throw new Error('The timer was not started');
    const answer = call(this.#queue);
    if (!(await settledWithin(PATIENCE, answer))) throw new Error(`BullMQ did not reply within ${PATIENCE} ms`);
    await answer;
  }

  async stop(): Promise<void> {
    const [queue, worker] = [this.#queue, this.#worker];
    if (!this.#isRunning || !queue || !worker) return;
    // Without its server, BullMQ would wait forever for running jobs, although none of them can end.
    const isDown = !(await isReached(queue));
    this.#isRunning = false;
    this.#stopping.abort();
    if (isDown && this.#hasOwnConnections) void queue.disconnect().catch(() => undefined);
    await settledWithin(PATIENCE, Promise.all([worker.close(isDown), queue.close()]));
  }

  /** And not the application's client. */
  get #hasOwnConnections(): boolean {
    return !('duplicate' in this.#connection);
  }

  /** A client of the application keeps its own rules. */
  #with(rules: object) {
    const connection = this.#connection;
    const retryStrategy = () => (this.#isRunning ? RECONNECTION : null);
    return { connection: this.#hasOwnConnections ? { ...connection, ...rules, retryStrategy } : connection };
  }

  async #process(job: Job, token: string | undefined, ask: AskAboutSession): Promise<void> {
    // A worker does not report that it has reconnected.
    this.#failures.succeeded();
    const delay = await ask(job.id ?? '').catch(() => NO_ANSWER);
    if (delay === undefined) return;
    // Otherwise the job would wait for the end of its lock.
    await untilSound(() => job.moveToDelayed(Date.now() + delay, token), this.#stopping.signal);
    throw new DelayedError();
  }
}

async function isReached(queue: Queue): Promise<boolean> {
  const reply = queue.getDelayedCount().then(
    () => true,
    () => false,
  );
  return (await settledWithin(REPLY, reply)) && reply;
}

const CONNECTION = 'options of ioredis, or a client';

function isConnection(value: unknown): value is ConnectionOptions {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether BullMQ would throw for a setting of a client, after it has opened a connection. */
function givesUp(connection: object = {}): boolean {
  if (!('duplicate' in connection && 'options' in connection)) return false;
  const options = Object(connection.options) as {
    readonly redisOptions?: object;
    readonly maxRetriesPerRequest?: unknown;
  };
  return Boolean({ ...options, ...options.redisOptions }.maxRetriesPerRequest);
}

function nameProblem(name: string): string | undefined {
  return name === '' || name.includes(':') ? 'must not be empty, and have no ":"' : undefined;
}
