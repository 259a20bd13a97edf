import { type Results } from './results.js';
import { medianOf, number, ratio, roundsOf, table } from './table.js';

/**
 * Each operation on a Cluster beside as many servers with its number of partitions, and with a single partition each.
 */
export function clusterReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const of = (name: string, figure: string) => roundsOf(comparison, name, figure);
    const names = ['cluster', 'servers', 'simple servers'];
    const each = (figure: string) => names.map((name) => number(medianOf(of(name, figure)))).join(' / ');
    const beside = (figure: string) => names.slice(1).map((name) => ratio(of('cluster', figure), of(name, figure)));
    return [comparison.title, each('commands'), each('redisTime'), ...beside('redisTime'), each('nodeTime')];
  });
  const headings = ['Cluster / servers / simple ones', 'commands', 'Redis µs', 'ratio', 'to simple ones'];
  return table([...headings, 'Node µs'], rows);
}
