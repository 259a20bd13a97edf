/**
 * What a step knows of the step before it. `running`: that one has taken so long that this step did not wait for it.
 */
export type StepBefore<T> = PromiseSettledResult<T> | { readonly status: 'running' };

/** Steps of one key run one after the other, in the order of the calls. A key takes no memory once they are over. */
export class TurnQueue<T> {
  readonly #last = new Map<string, Promise<StepBefore<T>>>();

  /** @param longestTurn milliseconds after which the next step starts, although the one before has not finished */
  constructor(private readonly longestTurn: number) {}

  get size(): number {
    return this.#last.size;
  }

  /**
   * Settles as the step does. The first step of a key starts at once, and gets undefined. The others get the result of
   * the step before, so that a failure need not stop them.
   */
  run(key: string, step: (before: StepBefore<T> | undefined) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = before ? before.then(step) : step(undefined);
    const turn = before ? before.then(() => this.#turnOf(result)) : this.#turnOf(result);
    this.#last.set(key, turn);
    void turn.then(() => {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    });
    return result;
  }

  #turnOf(result: Promise<T>): Promise<StepBefore<T>> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.longestTurn, { status: 'running' }).unref();
      const end = (outcome: PromiseSettledResult<T>) => {
        clearTimeout(timer);
        resolve(outcome);
      };
      result.then(
        (value) => end({ status: 'fulfilled', value }),
        (reason: unknown) => end({ status: 'rejected', reason }),
      );
    });
  }
}
