import { type Results } from './results.js';
import { number, roundsOf, table } from './table.js';

/** Sessions that end in the same second, handled by two processes. */
export function expiryReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const of = (figure: string, name = 'nest-session') => roundsOf(comparison, name, figure)[0]!;
    const [ping, control] = [of('pingP99'), of('pingP99', 'control')];
    return [
      comparison.title,
      number(of('seconds')),
      number(of('sinceEnd')),
      number(of('redisTime') - of('redisTime', 'control')),
      number(of('slowestCall')),
      `${of('callsOver3ms')}`,
      `${number(ping)} / ${number(control)}`,
      (ping / control).toFixed(2),
    ];
  });
  const head = [
    's from the minute of the bucket',
    's from the end',
    'Redis µs each',
    'slowest call, ms',
    'calls over 3 ms',
    'PING p99 ms / control',
    'ratio',
  ];
  return table(['sessions that end at once', ...head], rows);
}
