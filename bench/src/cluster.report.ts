import { type Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/** Each operation on a Cluster beside as many single servers. */
export function clusterReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const of = (figure: string) => roundsOf(comparison, 'cluster', figure);
    const beside = (figure: string) => roundsOf(comparison, 'servers', figure);
    const pair = (figure: string) => `${number(medianOf(of(figure)))} / ${number(medianOf(beside(figure)))}`;
    const both = (figure: string) => [pair(figure), ratio(of(figure), beside(figure))];
    return [comparison.title, pair('commands'), ...both('redisTime'), ...both('nodeTime')];
  });
  return table(['Cluster / servers', 'commands', 'Redis µs', 'ratio', 'Node µs', 'ratio'], rows);
}
