/**
 * Remembers what has been observed by its name. The SDK repeats the last value of what is no longer observed, so what
 * is gone is observed as empty.
 */
export class RecentNames<Reading extends { readonly name: string }> {
  readonly #emptied = new Map<string, Reading>();

  constructor(private readonly emptied: (last: Reading) => Reading) {}

  /** The readings of now, and empty ones for the names of earlier ones. */
  with(readings: readonly Reading[]): Reading[] {
    const all = new Map([...this.#emptied, ...readings.map((reading) => [reading.name, reading] as const)]);
    for (const reading of readings) this.#emptied.set(reading.name, this.emptied(reading));
    return [...all.values()];
  }
}
