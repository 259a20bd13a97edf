/**
 * What a check has started, one after the other. It ends in the reverse order, also where the start of a later part has
 * failed: what failed is told then, and nothing that was started is left.
 */
export class StartedParts {
  readonly #stops: (() => unknown)[] = [];

  /** Notes a part that has started, and returns it. */
  add<Part>(part: Part, stop: (part: Part) => unknown): Part {
    this.#stops.push(() => stop(part));
    return part;
  }

  /** Ends all parts. @throws what the first of them threw, when all have been told to end */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (const stop of this.#stops.splice(0).toReversed()) {
      await Promise.resolve()
        .then(stop)
        .catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}
