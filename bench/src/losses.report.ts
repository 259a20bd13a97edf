import { httpRatios } from './http.report.js';
import { type Results } from './results.js';
import { ratioOf } from './rounds.js';
import { medianOf, number, roundsOf } from './table.js';

/** A script may take this much longer than one that does the least: it checks what it writes. */
const BUDGET = { factor: 1.3, microseconds: 2 };

/** A list of all comparisons in which ours is behind, the worst first. */
export function lossesReport(http: Results, budgets: Results, memory: Results): string {
  const losses = [...requestLosses(http), ...operationLosses(budgets), ...memoryLosses(memory)];
  return losses.length === 0 ? 'Nowhere in this run.' : losses.map((loss) => `- ${loss}`).join('\n');
}

function requestLosses(http: Results): string[] {
  return httpRatios(http, 'perSecond')
    .filter(({ isLimit }) => !isLimit)
    .map((each) => ({ ...each, median: ratioOf(each.values, each.beside).median }))
    .filter(({ median }) => Number(median.toFixed(2)) < 1)
    .toSorted((one, other) => one.median - other.median)
    .map(({ scenario, rival, median }) => `${scenario}: ${median.toFixed(2)} of the requests/s of ${rival}`);
}

function operationLosses({ comparisons }: Results): string[] {
  return comparisons.flatMap((comparison) => {
    const [ours, bare] = ['ours', 'bare'].map((name) => medianOf(roundsOf(comparison, name, 'execution'))) as [
      number,
      number,
    ];
    if (ours <= bare * BUDGET.factor + BUDGET.microseconds) return [];
    return [`${comparison.title}: ${number(ours)} µs in Redis, and ${number(bare)} µs for the least that is needed`];
  });
}

function memoryLosses({ comparisons }: Results): string[] {
  return comparisons.flatMap((comparison) => {
    const ours = medianOf(roundsOf(comparison, 'nest-session', 'bytes'));
    return ['Spring Session', 'connect-redis'].flatMap((rival) => {
      const theirs = medianOf(roundsOf(comparison, rival, 'bytes'));
      return ours <= theirs ? [] : [`${comparison.title}: ${(ours / theirs).toFixed(2)} of the memory of ${rival}`];
    });
  });
}
