import type { Comparison, Results } from './results.js';
import { medianOf, number, roundsOf, table } from './table.js';

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
  // With the most that wait.
  return [callsTable(calls!), latenessTable(lateness.slice(-1))].join('\n\n');
}

function callsTable(comparison: Comparison): string {
  const rows = comparison.contenders.map(({ name }) => [
    name,
    ...Object.keys(CALLS).map((figure) => number(medianOf(roundsOf(comparison, name, figure)))),
  ]);
  return table(['way', ...Object.values(CALLS)], rows);
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
