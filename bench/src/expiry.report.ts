import { type Results } from './results.js';
import { medianOf, number, roundsOf, table } from './table.js';

/** Sessions that end in the same second, handled by two processes. */
export function expiryReport({ comparisons }: Results): string {
  const rows = comparisons.map((comparison) => {
    const of = (figure: string, name = 'nest-session') => medianOf(roundsOf(comparison, name, figure));
    const pings = ['nest-session', 'control', 'busy control'].map((name) => of('pingP99', name));
    return [
      comparison.title,
      number(of('seconds')),
      number(of('redisTime') - of('redisTime', 'control')),
      number(Math.max(...roundsOf(comparison, 'nest-session', 'slowestCall'))),
      ['nest-session', 'busy control'].map((name) => Math.round(of('callsOver3ms', name))).join(' / '),
      pings.map(number).join(' / '),
    ];
  });
  const head = [
    's from the minute of the bucket',
    'Redis µs each',
    'slowest call, ms',
    'calls over 3 ms / bursts of the busy control',
    'PING p99 ms / control / busy control',
  ];
  return table(['sessions that end at once', ...head], rows);
}
