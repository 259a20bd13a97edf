import jackd from 'jackd';

/** The address of a beanstalkd, and the tube to use. */
export interface BeanstalkdAddress {
  readonly host: string;
  readonly port: number;
  readonly tube: string;
}

/** A reserved job. No other connection gets it until this connection ends or `TIME_TO_RUN` has passed. */
export interface ReservedJob {
  readonly job: string;
  readonly text: string;
}

// Seconds.
const TIME_TO_RUN = 60;
const LONGEST_WAIT = 10;
// Milliseconds that beanstalkd may take for a reply, not counting the wait for a job.
const PATIENCE = 5000;
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

/**
 * One connection to beanstalkd. A call fails when the connection is lost, or when beanstalkd takes too long, which ends
 * the connection. Without this, jackd would wait forever. Reserve jobs on a connection that does nothing else
 * meanwhile, because jackd takes the data that follows a job for a part of it.
 */
export class BeanstalkdConnection {
  readonly #client = new JackdClient();
  readonly #calls = new Set<Call>();
  readonly #watch: NodeJS.Timeout;
  #loss: Error | undefined;
  #tellLoss!: (loss: Error) => void;
  /** Resolves to the reason when the connection ends. */
  readonly lost = new Promise<Error>((resolve) => (this.#tellLoss = resolve));

  private constructor({ host, port }: BeanstalkdAddress) {
    const lose = (reason: string) => this.#lose(new Error(`beanstalkd at ${host}:${port} ${reason}`));
    this.#client.socket.on('error', ({ message }) => lose(`cannot be reached: ${message}`));
    this.#client.socket.on('close', () => lose('closed the connection'));
    this.#watch = setInterval(() => {
      const now = performance.now();
      for (const { deadline } of this.#calls) if (deadline < now) return lose('does not reply');
    }, PATIENCE / 5).unref();
  }

  /** @throws Error when beanstalkd cannot be reached, or does not reply */
  static async open(address: BeanstalkdAddress): Promise<BeanstalkdConnection> {
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

  /** Schedules a job, and returns its number. @param delay whole seconds */
  put(text: string, delay: number): Promise<string> {
    return this.#call(() => this.#client.put(text, { delay, priority: PRIORITY, ttr: TIME_TO_RUN }));
  }

  /** Reserves a job that is due. Returns undefined if there is none, either at once or, with `waits`, after a while. */
  async reserve({ waits }: { readonly waits: boolean }): Promise<ReservedJob | undefined> {
    const seconds = waits ? LONGEST_WAIT : 0;
    const found = await this.#call(
      () => unlessReplied(/^(TIMED_OUT|DEADLINE_SOON)$/, this.#client.reserveWithTimeout(seconds)),
      seconds * 1000,
    );
    return found && { job: found.id, text: found.payload.toString().slice(0, LONGEST_TEXT) };
  }

  /** Deletes a reserved or delayed job. It is not an error if another connection has reserved or deleted it. */
  async delete(job: string): Promise<void> {
    await this.#call(() => unlessReplied(/^NOT_FOUND$/, this.#client.delete(job)));
  }

  /** Returns a reserved job for `delay` whole seconds later. It is not an error if another connection has it by now. */
  async release(job: string, delay: number): Promise<void> {
    await this.#call(() => unlessReplied(/^NOT_FOUND$/, this.#client.release(job, { delay, priority: PRIORITY })));
  }

  /** Ends the connection at once. Open calls fail with this error, and beanstalkd gives the reserved jobs to others. */
  close(reason = new Error('The connection to beanstalkd is closed')): void {
    this.#lose(reason);
  }

  #call<T>(send: () => Promise<T>, wait = 0): Promise<T> {
    if (this.#loss) return Promise.reject(this.#loss);
    return new Promise((resolve, fail) => {
      const call: Call = { deadline: performance.now() + wait + PATIENCE, fail };
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
