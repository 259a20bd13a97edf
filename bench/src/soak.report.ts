import { type Results } from './results.js';
import { SoakFigures } from './soak.figures.js';
import { medianOf, number, table } from './table.js';

const MEBIBYTE = 2 ** 20;

/** A day of ten instances: whether memory is level, and what became of the sessions. */
export function soakReport(results: Results): string {
  const figures = new SoakFigures(results);
  return `${memoryTable(figures)}\n\n${countTable(figures)}`;
}

function memoryTable(figures: SoakFigures): string {
  const row = (name: string, values: readonly number[], unit = MEBIBYTE) => {
    const { second, last } = figures.quarters(values);
    return [name, number(second / unit), number(last / unit), (last / second).toFixed(2)];
  };
  return table(
    ['median of the looks', 'second quarter', 'last quarter', 'ratio'],
    [
      row('heap of an instance after a garbage collection, MiB', figures.instances('heap').map(medianOf)),
      row('resident memory of an instance, MiB', figures.instances('resident').map(medianOf)),
      row('`used_memory` of Redis, MiB', figures.redis('memory')),
      row('`used_memory_dataset` of Redis, MiB', figures.redis('dataset')),
      row('keys in Redis', figures.redis('keys'), 1),
      row('live sessions', figures.redis('sessions'), 1),
    ],
  );
}

function countTable(figures: SoakFigures): string {
  const whole = (value: number) => value.toLocaleString('en');
  const call = (name: string) => whole(figures.count('calls', name));
  const event = (name: string) => whole(figures.count('events', name));
  const end = (name: string) => whole(figures.count('end', name));
  const memory = (when: 'before' | 'afterwards') => {
    return number((figures.count(when, 'memory') - figures.count(when, 'backlog')) / MEBIBYTE);
  };
  const keys = (when: 'before' | 'afterwards') => whole(figures.count(when, 'keys'));
  const outside = figures.count('calls', 'failed') - figures.count('calls', 'failedInFailovers');
  const rows = [
    ['hours', whole(figures.count('schedule', 'minutes') / 60)],
    ['instances', whole(figures.count('schedule', 'instances'))],
    ['deploys', whole(figures.times('deploys').length)],
    ['failovers', whole(figures.times('failovers').length)],
    ['sessions created', event('created')],
    ['sessions expired', event('expired')],
    ['sessions deleted', event('deleted')],
    ['sign-ins', event('signed-in')],
    ['changed ids', event('id-changed')],
    ['deadlines scheduled', call('scheduled')],
    ['deadlines cancelled', call('cancelled')],
    ['deadlines fired', event('fired')],
    ['loads, saves', `${call('read')}, ${call('saved')}`],
    ['calls that failed during failovers', call('failedInFailovers')],
    ['calls that failed at other times', whole(outside)],
    ['sessions not as they were left', call('wrongSessions')],
    ['deadlines not as they were left', call('wrongDeadlines')],
    ['events not handled at the end, dead letters', `${end('lag')}, ${end('deadLetters')}`],
    ['findings of `verify`', end('findings')],
    ['keys in Redis before and afterwards', `${keys('before')}, ${keys('afterwards')}`],
    ['`used_memory` without the backlog before and afterwards, MiB', `${memory('before')}, ${memory('afterwards')}`],
  ];
  return table(['what', 'count'], rows);
}
