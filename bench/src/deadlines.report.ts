import type { Comparison, Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

const CALLS = {
  scheduled: 'schedule/s',
  scheduleTime: 'Redis µs',
  scheduleNodeTime: 'Node µs',
  cancelled: 'cancel/s',
  cancelTime: 'Redis µs',
  cancelNodeTime: 'Node µs',
};
const LATENESS = ['p50', 'p99', 'max', 'fireTime', 'bytes'];

/** What deadlines cost beside delayed jobs, and how late they are. */
export function deadlinesReport({ comparisons }: Results): string {
  const [calls, ...lateness] = comparisons;
  return [callsTable(calls!), latenessTable(lateness)].join('\n\n');
}

function callsTable(comparison: Comparison): string {
  const [first] = comparison.contenders;
  const rows = comparison.contenders.map(({ name }) => [
    name,
    ...Object.keys(CALLS).flatMap((figure) => {
      const values = roundsOf(comparison, name, figure);
      return [number(medianOf(values)), ratio(values, roundsOf(comparison, first!.name, figure))];
    }),
  ]);
  return table(['way', ...Object.values(CALLS).flatMap((each) => [each, 'ratio'])], rows);
}

function latenessTable(comparisons: readonly Comparison[]): string {
  const rows = comparisons.flatMap((comparison) =>
    comparison.contenders.map(({ name }) => [
      `${name}, ${comparison.title} others wait`,
      `${Math.round(100 * medianOf(roundsOf(comparison, name, 'handled')))} %`,
      ...LATENESS.map((figure) => {
        const [value] = roundsOf(comparison, name, figure);
        return value === undefined ? '-' : number(value);
      }),
    ]),
  );
  const head = ['ms late, median', 'p99', 'longest', 'Redis µs for each', 'bytes of each that waits'];
  return table(['way', 'handled', ...head], rows);
}
