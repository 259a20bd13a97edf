import { type Comparison, type Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/** What encryption adds to a request. */
export function encryptionReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const of = (figure: string) => ratio(...both(comparison, figure));
    const medians = (figure: string) => both(comparison, figure).map((values) => number(medianOf(values)));
    return [
      comparison.title,
      medians('nodeTime').join(' / '),
      of('nodeTime'),
      medians('redisTime').join(' / '),
      of('redisTime'),
    ];
  });
  return table(['encrypted / plain', 'Node µs', 'ratio', 'Redis µs', 'ratio'], rows);
}

function both(comparison: Comparison, figure: string): [readonly number[], readonly number[]] {
  return [roundsOf(comparison, 'encrypted', figure), roundsOf(comparison, 'plain', figure)];
}
