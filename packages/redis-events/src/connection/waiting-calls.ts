import { setImmediate } from 'node:timers';

/** The turn of the event loop in which calls began. */
interface Turn {
  /** When the time of its calls passes, in ms of the monotonic clock. The turn still runs while it is Infinity. */
  ends: number;
}

/**
 * The calls of requests that wait for Redis, and how long: they must be settled within the command timeout, also while
 * Redis is down. RequestConnection sends them as soon as a node is ready, none twice, and fails those whose connection
 * was lost. They are in the order in which their time passes, with one timer for the oldest. The time of a call begins
 * when the turn of the event loop that it began in ends: before, its commands may not have left the process.
 */
export class WaitingCalls<Call extends object> {
  readonly #turns = new Map<Call, Turn>();
  #turn: Turn | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `timeout`: milliseconds. `expire` is called once with each call whose time has passed. */
  constructor(
    private readonly timeout: number,
    private readonly expire: (call: Call) => void,
  ) {}

  /** The calls that are not settled, the oldest first. */
  get calls(): Iterable<Call> {
    return this.#turns.keys();
  }

  add(call: Call): void {
    this.#turns.set(call, (this.#turn ??= this.#begin()));
  }

  has(call: Call): boolean {
    return this.#turns.has(call);
  }

  /** Removes a settled call. False when it was removed before. */
  delete(call: Call): boolean {
    const isOpen = this.#turns.delete(call);
    if (this.#turns.size === 0) this.#stop();
    return isOpen;
  }

  #begin(): Turn {
    const turn = { ends: Infinity };
    setImmediate(() => {
      turn.ends = performance.now() + this.timeout;
      this.#turn = undefined;
      this.#start();
    });
    return turn;
  }

  #start(): void {
    const [oldest] = this.#turns.values();
    // When its turn ends, the timer starts.
    if (this.#timer !== undefined || oldest === undefined || oldest.ends === Infinity) return;
    this.#timer = setTimeout(
      () => {
        const now = performance.now();
        // Node.js runs timers before it reads sockets: after a long pause of the process, replies may have arrived.
        setImmediate(() => this.#expireUntil(now));
      },
      // It may have passed while other calls were told that theirs has.
      Math.max(0, Math.ceil(oldest.ends - performance.now())),
    );
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #expireUntil(now: number): void {
    this.#stop();
    for (const [call, { ends }] of this.#turns) {
      if (ends > now) break;
      this.#turns.delete(call);
      this.expire(call);
    }
    this.#start();
  }
}
