import { type Results } from './results.js';
import { medianOf, number, roundsOf, table } from './table.js';

/** The contender on a server with `hash-max-listpack-value 512`. */
export const WITH_512 = 'nest-session, listpack 512';

/** Bytes of one session in Redis, by what its attributes take. */
export function memoryReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const names = ['nest-session', WITH_512, 'Spring Session', 'connect-redis'];
    const [ours = 0, compact = 0, spring = 0, connect = 0] = names.map((name) =>
      medianOf(roundsOf(comparison, name, 'bytes')),
    );
    return [
      comparison.title,
      ...[ours, compact, spring, connect].map(number),
      (ours / spring).toFixed(2),
      (ours / connect).toFixed(2),
    ];
  });
  const head = ['nest-session', 'at 512', 'Spring Session', 'connect-redis', 'of Spring', 'of connect-redis'];
  return table(['bytes per session', ...head], rows);
}
