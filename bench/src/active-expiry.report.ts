import { type Results } from './results.js';
import { number, roundsOf, table } from './table.js';

/** How late Redis itself notices that keys have expired. */
export function activeExpiryReport({ comparisons }: Results): string {
  const rows = comparisons.flatMap((comparison) =>
    comparison.contenders.map(({ name }) => {
      const of = (figure: string) => roundsOf(comparison, name, figure)[0];
      const late = (figure: string) => {
        const value = of(figure);
        return value === undefined ? `over ${of('patience')} min` : `${number(value)} s`;
      };
      const share = (figure: string) => `${Math.round(100 * of(figure)!)} %`;
      return [`${comparison.title}`, name, share('within'), late('p50'), late('p99'), share('noticed')];
    }),
  );
  const minutes = roundsOf(comparisons[0]!, comparisons[0]!.contenders[0]!.name, 'patience')[0];
  const head = ['keys', 'noticed within 1 min', 'late, median', 'p99', `noticed within ${minutes} min`];
  return table(['what the keys do', ...head], rows);
}
