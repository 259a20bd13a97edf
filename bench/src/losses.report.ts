import { httpRatios } from './http.report.js';
import { type Results } from './results.js';
import { ratioOf } from './rounds.js';
import { medianOf, roundsOf } from './table.js';

/** A list of all comparisons in which ours is behind, the worst first. */
export function lossesReport(http: Results, memory: Results): string {
  const losses = [...requestLosses(http), ...memoryLosses(memory)];
  return losses.length === 0 ? 'Nowhere in this run.' : losses.map((loss) => `- ${loss}`).join('\n');
}

function requestLosses(http: Results): string[] {
  return httpRatios(http)
    .filter(({ isLimit }) => !isLimit)
    .map((each) => ({ ...each, median: ratioOf(each.values, each.beside).median }))
    .filter(({ median }) => Number(median.toFixed(2)) < 1)
    .toSorted((one, other) => one.median - other.median)
    .map(({ scenario, rival, median }) => `${scenario}: ${median.toFixed(2)} of the requests/s of ${rival}`);
}

function memoryLosses({ comparisons }: Results): string[] {
  return ['connect-redis', 'Spring Session'].flatMap((rival) => {
    const ratios = comparisons.map((comparison) => {
      const [ours, theirs] = ['nest-session', rival].map((name) => medianOf(roundsOf(comparison, name, 'bytes')));
      return ours! / theirs!;
    });
    const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
    return most <= 1 ? [] : [`memory: ${least.toFixed(2)} to ${most.toFixed(2)} of that of ${rival}`];
  });
}
