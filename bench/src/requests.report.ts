import { type Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/** What SessionModule costs without Redis: one column for each adapter. */
export function requestsReport({ comparisons }: Results): string {
  const [first] = comparisons;
  const names = first?.contenders.map(({ name }) => name) ?? [];
  const bare = names[0]!;
  const rows = names.map((name) => [
    name,
    ...comparisons.flatMap((comparison) => {
      const values = roundsOf(comparison, name, 'nodeTime');
      return [number(medianOf(values)), ratio(values, roundsOf(comparison, bare, 'nodeTime'))];
    }),
  ]);
  return table(['', ...comparisons.flatMap(({ title }) => [`${title}: µs`, 'of the bare one'])], rows);
}
