import { type Results } from './results.js';
import { medianOf, roundsOf } from './table.js';

/** The memory of the soak, or its load, in two quarters of the day: of the medians of the looks, the median. */
export interface Quarters {
  readonly second: number;
  readonly last: number;
}

/** What the soak has recorded, by name. */
export class SoakFigures {
  constructor(private readonly results: Results) {}

  /** The minutes of the looks, of the deploys or of the failovers. */
  times(what: 'looks' | 'deploys' | 'failovers'): readonly number[] {
    return this.#figure('times', 'minutes', what);
  }

  /** A figure of Redis at each look. */
  redis(what: 'memory' | 'dataset' | 'keys' | 'sessions' | 'lag'): readonly number[] {
    return this.#figure('looks', 'Redis', what);
  }

  /** At each look, the figure of each instance that has lived through the whole day. */
  instances(what: 'heap' | 'resident'): readonly (readonly number[])[] {
    const { figures } = this.#contender('looks', 'instances');
    const each = Object.entries(figures).filter(([name]) => name.startsWith(`${what} `));
    return this.times('looks').map((_, i) => each.map(([, values]) => values[i]!));
  }

  count(of: 'schedule' | 'calls' | 'events' | 'end' | 'before' | 'afterwards', name: string): number {
    return this.#figure('counts', of, name)[0]!;
  }

  /** `values`: one for each look. */
  quarters(values: readonly number[]): Quarters {
    const quarter = this.count('schedule', 'minutes') / 4;
    const times = this.times('looks');
    const within = (from: number, to: number) =>
      medianOf(values.filter((_, i) => times[i]! > from * quarter && times[i]! <= to * quarter));
    return { second: within(1, 2), last: within(3, 4) };
  }

  #figure(title: string, name: string, figure: string): readonly number[] {
    const comparison = this.results.comparisons.find((each) => each.title === title)!;
    return roundsOf(comparison, name, figure);
  }

  #contender(title: string, name: string) {
    return this.results.comparisons
      .find((each) => each.title === title)!
      .contenders.find((each) => each.name === name)!;
  }
}
