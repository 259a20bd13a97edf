import { setTimeout as pause } from 'node:timers/promises';

// Milliseconds. Each call blocks Redis for less than this, so Redis serves requests most of the time.
const PAUSE = 1;

/** The calls to one node. */
interface Lane {
  last: Promise<unknown>;
  /** The monotonic time from which the next call may run. */
  nextCall: number;
}

/**
 * Keeps background work from crowding out requests, however much work there is. The calls to a node run one at a time,
 * with a pause in between. Each call must be small.
 */
export class BackgroundLimiter {
  readonly #lanes = new Map<string | undefined, Lane>();

  /** @param pauseTime milliseconds. @param nodeOf returns a name for the node that has a key */
  constructor(
    private readonly pauseTime = PAUSE,
    private readonly nodeOf: (key: string) => string | undefined = () => undefined,
  ) {}

  /**
   * Runs the calls to a node in the order of `run()`. The pause delays the next call, not the result of this one.
   * @param key one of the keys of the call, which are all on one node
   */
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
    try {
      return await call();
    } finally {
      lane.nextCall = performance.now() + this.pauseTime;
    }
  }
}
