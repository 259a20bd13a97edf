import { setTimeout as pause } from 'node:timers/promises';

const SHORTEST_PAUSE = 1;
// After a call that has waited for a node to return.
const LONGEST_PAUSE = 20;
// How many times as long as the call before it: a slow Redis gets more room for requests, and for other instances.
const PAUSE_PER_CALL = 2;

interface Lane {
  last: Promise<unknown>;
  nextCall: number;
}

/** Keeps background work from crowding out requests: one call to a node, then a pause, longer after a longer one. */
export class BackgroundLimiter {
  readonly #lanes = new Map<string | undefined, Lane>();

  /** `shortestPause`: milliseconds; 0: none. `nodeOf`: a name for the node that has a key. */
  constructor(
    private readonly shortestPause = SHORTEST_PAUSE,
    private readonly nodeOf: (key: string) => string | undefined = () => undefined,
  ) {}

  /** The pause delays the next call, not the result of this one. `key`: one of the keys of the call. */
  run<T>(call: () => Promise<T>, key: string): Promise<T> {
    const node = this.nodeOf(key);
    const lane = this.#lanes.get(node) ?? { last: Promise.resolve(), nextCall: 0 };
    this.#lanes.set(node, lane);
    const turn = lane.last.then(() => this.#take(lane, call));
    lane.last = turn.catch(() => undefined);
    return turn;
  }

  async #take<T>(lane: Lane, call: () => Promise<T>): Promise<T> {
    const left = lane.nextCall - performance.now();
    if (left > 0) await pause(left);
    const begun = performance.now();
    try {
      return await call();
    } finally {
      const ended = performance.now();
      lane.nextCall = ended + this.#pauseAfter(ended - begun);
    }
  }

  #pauseAfter(duration: number): number {
    if (this.shortestPause === 0) return 0;
    return Math.min(Math.max(this.shortestPause, PAUSE_PER_CALL * duration), LONGEST_PAUSE);
  }
}

/** Lets no more than so many things through in a second, on average. */
export class Pace {
  readonly #began = performance.now();
  #passed = 0;

  constructor(
    private readonly perSecond: number,
    readonly signal?: AbortSignal,
  ) {}

  get passed(): number {
    return this.#passed;
  }

  /** Waits until so many more may pass. @throws the reason of the signal */
  async pass(count: number): Promise<void> {
    this.signal?.throwIfAborted();
    this.#passed += count;
    const ahead = this.#began + (this.#passed / this.perSecond) * 1000 - performance.now();
    // A timer is not more exact.
    if (ahead > 1) await pause(ahead, undefined, this.signal ? { signal: this.signal } : {});
  }
}
