import { type Results } from './results.js';
import { number, roundsOf, table } from './table.js';

/** Bytes of one session in Redis, by what its attributes take. */
export function memoryReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const bytes = (name: string, figure = 'bytes') => roundsOf(comparison, name, figure)[0]!;
    const ours = bytes('nest-session', 'withoutEvents');
    const [spring, connect] = [bytes('Spring Session'), bytes('connect-redis')];
    const all = [ours, bytes('nest-session'), spring, connect].map(number);
    return [comparison.title, ...all, (ours / spring).toFixed(2), (ours / connect).toFixed(2)];
  });
  const head = ['nest-session', 'with its event', 'Spring Session', 'connect-redis', 'of Spring', 'of connect-redis'];
  return table(['bytes per session', ...head], rows);
}
