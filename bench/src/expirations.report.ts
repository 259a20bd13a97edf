import { type Results } from './results.js';
import { medianOf, number, roundsOf, table } from './table.js';

// Microseconds of Redis in a second.
const NOISE = 500;
const FIGURES = ['p50', 'p99', 'max', 'perEnd', 'atRest', 'bytes'];

/** How late each way notices that sessions have expired, and what it costs. */
export function expirationsReport({ comparisons }: Results): string {
  const rows = comparisons.flatMap((comparison) =>
    comparison.contenders.map(({ name }) => [
      name,
      `${Math.round(100 * medianOf(roundsOf(comparison, name, 'noticed')))} %`,
      ...FIGURES.map((figure) => {
        const [value] = roundsOf(comparison, name, figure);
        if (value === undefined) return '-';
        if (figure === 'atRest' && value < NOISE) return `< ${NOISE}`;
        return value < 1 ? value.toFixed(3) : number(value);
      }),
    ]),
  );
  const head = ['s late, median', 'p99', 'longest', 'Redis µs per end', 'Redis µs per s at rest', 'bytes per session'];
  return table(['way', 'noticed', ...head], rows);
}
