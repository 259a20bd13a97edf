import { type Results } from './results.js';
import { SoakFigures } from './soak.figures.js';
import { medianOf } from './table.js';

/** The memory of the last quarter, divided by that of the second one, may be so much at most. */
const MOST_GROWTH = 1.1;
/**
 * Bytes that Redis may have at the end more than at the start, for what a hash table or a stream has that was once
 * full.
 */
const MOST_LEFT = 2 ** 21;
/** Keys that Redis may have at the end more than at the start: those of the store, of which none is a session's. */
const MOST_KEYS_LEFT = 10;

/**
 * What is wrong with a soak. A call that failed may have taken effect or not, and a handler may have heard of a change
 * that a failover has lost: only such calls explain that two counts differ. Deadlines do not wait for a replica, so a
 * failover may lose as many again that were acknowledged.
 */
export function problemsOf(results: Results): string[] {
  const figures = new SoakFigures(results);
  const call = (name: string) => figures.count('calls', name);
  const event = (name: string) => figures.count('events', name);
  const [ends, due] = [call('failedEnds'), call('failedDeadlines')];
  const between = (what: string, count: number, least: number, spread: number) =>
    count >= least && count <= least + spread ? [] : [`${what}: ${count}, and ${least} of calls that succeeded`];
  const difference = Math.abs(event('created') - event('expired') - event('deleted'));
  const fired = Math.abs(event('fired') - call('scheduled') + call('cancelled'));
  const zero = (of: 'calls' | 'end', name: string) => {
    const count = figures.count(of, name);
    return count === 0 ? [] : [`${name}: ${count} instead of 0`];
  };
  const level = (what: string, values: readonly number[]) => {
    const { second, last } = figures.quarters(values);
    return last <= MOST_GROWTH * second ? [] : [`${what}: ${second} in the second quarter, and ${last} in the last`];
  };
  const memory = (when: 'before' | 'afterwards') => figures.count(when, 'memory') - figures.count(when, 'backlog');
  const left = memory('afterwards') - memory('before');
  const keys = figures.count('afterwards', 'keys') - figures.count('before', 'keys');
  return [
    ...between('created events', event('created'), call('created'), ends),
    ...between('deleted events', event('deleted'), call('deleted'), ends),
    ...between('sign-ins', event('signed-in'), call('signedIn'), ends),
    ...between('changed ids', event('id-changed'), call('rotated'), call('failed')),
    ...(difference <= ends ? [] : [`${difference} more or fewer sessions were created than have ended`]),
    ...(fired <= due ? [] : [`${fired} more or fewer deadlines were scheduled than were cancelled or fired`]),
    ...zero('calls', 'wrongSessions'),
    ...(call('wrongDeadlines') <= due ? [] : [`${call('wrongDeadlines')} deadlines were not as they had been left`]),
    ...['sessions', 'deadlines', 'lag', 'deadLetters', 'dropped', 'findings'].flatMap((name) => zero('end', name)),
    ...level('heap', figures.instances('heap').map(medianOf)),
    ...level('memory of Redis', figures.redis('memory')),
    ...(keys <= MOST_KEYS_LEFT ? [] : [`Redis has ${keys} keys more at the end than at the start`]),
    ...(left <= MOST_LEFT ? [] : [`Redis has ${left} bytes more at the end than at the start`]),
  ];
}
