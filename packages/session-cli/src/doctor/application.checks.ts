import { setTimeout as pause } from 'node:timers/promises';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { type PartitionKeys, shownCommand, shownContent } from '@nest-session/redis-events/internal';
import { counted, shownDuration } from '../command/shown.js';
import { contentOf, entriesIn, groupsOf, instanceStates, type ToldGroup } from '../command/store-content.js';
import { type Check, type Diagnosis, error, ofStore, ok, orOk, seePage, warning } from './diagnosis.js';

/** Whether this version can use what is in the namespace: as an application checks it at the start. */
export const FORMAT: Check = ({ store, redis }) => {
  if (!(store instanceof Error)) {
    const { owner, count, namespace } = store.partitions;
    const where = `namespace ${JSON.stringify(namespace)}`;
    return [ok(`The ${shownContent(owner.holds)} in ${where} are in ${counted(count, 'partition')}`)];
  }
  const problem = store instanceof InvalidSessionOptionsError ? store.problems.join(' ') : store.message;
  if (!problem.startsWith('No application')) return [error(problem, seePage('Operating'))];
  const given = JSON.stringify(redis.options.namespace);
  return [warning(problem, `If that is not so, --namespace is not ${given}. Otherwise start one.`)];
};

export const INSTANCES: Check = ofStore(async (store) => {
  const { alive, silent } = await instanceStates(store);
  const [was, does] = silent.length === 1 ? ['was', 'does'] : ['were', 'do'];
  const dead = `; ${silent.length} ${was} killed within a day, or ${does} not reach Redis`;
  const rest = silent.length === 0 ? '' : dead;
  if (alive.length === 0) {
    const advice = 'Start the application: nobody notices what is due, and events wait.';
    return [warning(`No instance is alive${rest}`, advice)];
  }
  const shown = alive.slice(0, 5).map((name) => JSON.stringify(name.replace(/:[^:]*$/, '')));
  const count = counted(alive.length, 'instance is', 'instances are');
  return [ok(`${count} alive: ${shown.join(', ')}${alive.length > shown.length ? ', ...' : ''}${rest}`)];
});

// Milliseconds. A turn is free for the last tenth of the time between two ticks, and before the first tick: a minute by
// default.
const LONGEST_GAP = 65_000;
const INTERVAL = 500;

/** Whether instances take turns with the cleanup, which trims events and finds ends that nobody has noticed. */
export const CLEANUP: Check = ofStore(async (store, { call: { output, signal } }) => {
  const { alive } = await instanceStates(store);
  let left: readonly PartitionKeys[] = store.partitions.all;
  for (let waited = 0; ; waited += INTERVAL) {
    const found = await store.connection.runInAll({ all: left }, (client, { cleanup }) => client.exists(cleanup));
    left = left.filter((_, i) => found[i] === 0);
    if (left.length === 0) return [ok('An instance has cleaned up in every partition since the last tick')];
    if (alive.length === 0 || waited >= LONGEST_GAP) break;
    output.progress('Waiting for the next cleanup');
    await pause(INTERVAL, undefined, { signal });
  }
  const where = store.partitions.count === 1 ? '' : ` of ${left.length} partitions`;
  const advice = 'Start an instance, or see its log for the cleanup. With a rare cleanup.cron, add --ignore cleanup.';
  return [warning(`Nobody has taken the turn for the cleanup${where}`, `${advice} ${seePage('Operating')}`)];
});

const OVERDUE_FOR_LONG = 120_000;
const OVERDUE_FOR_TOO_LONG = 300_000;

export const OVERDUE: Check = ofStore(async (store) => {
  const { overdue, deadlines = [] } = await contentOf(store);
  const isOfDeadlines = deadlines.length > 0 || store.partitions.owner.holds === 'deadlines';
  const what = isOfDeadlines ? 'deadline' : 'end of a session';
  if (overdue <= OVERDUE_FOR_LONG) return [ok(`No ${what} waits for longer than two minutes`)];
  const late = deadlines.filter((each) => each.overdue > OVERDUE_FOR_LONG).map(({ name }) => JSON.stringify(name));
  const names = late.length === 0 ? '' : ` (${late.join(', ')})`;
  const message = `The oldest ${what} that nobody has noticed was due ${shownDuration(overdue)} ago${names}`;
  const advice = isOfDeadlines
    ? 'Deploy an instance with an @OnDeadline method for it, or see the log for the reason.'
    : 'See the log of the instances for the reason.';
  return [overdue > OVERDUE_FOR_TOO_LONG ? error(message, advice) : warning(message, advice)];
});

const UNREAD_FOR_LONG = 300_000;

/** What a group has lost before is no finding: it cannot be mended. */
export const GROUPS: Check = ofStore(async (store) => {
  const groups = await groupsOf(store);
  const findings = groups.flatMap((group) => [...findingsOf(group, store.partitions.namespace)]);
  const lost = groups
    .filter(({ dropped, lostDeadLetters }) => dropped + lostDeadLetters > 0)
    .map(({ name, dropped, lostDeadLetters }) => {
      const [events, letters] = [counted(dropped, 'event'), counted(lostDeadLetters, 'dead letter')];
      return `; group ${JSON.stringify(name)} has lost ${events} and ${letters}`;
    });
  return orOk(findings, `${counted(groups.length, 'group')}, none of them late${lost.join('')}`);
});

function* findingsOf({ name, lag, oldestUnreadAge, instances }: ToldGroup, namespace: string): Iterable<Diagnosis> {
  const [shown, unread] = [JSON.stringify(name), counted(lag, 'event')];
  if (oldestUnreadAge > UNREAD_FOR_LONG) {
    yield warning(
      `Group ${shown} is late: it has not read ${unread}, the oldest of them from ${shownDuration(oldestUnreadAge)} ago`,
      'See the log of its instances. If its handlers are slow, add instances, or raise events.concurrency.',
    );
  }
  if (instances === 0) {
    const remove = shownCommand(namespace, 'groups', `--remove=${name}`, '--yes');
    yield warning(
      `Nobody reads the events of group ${shown}, and they are kept for it`,
      `Start an instance of the group. If it is no longer used: ${remove}`,
    );
  }
}

export const DEAD_LETTERS: Check = ofStore(async (store) => {
  const count = await entriesIn(store, 'deadLetters');
  if (count === 0) return [ok('There are no dead letters')];
  const message = `${counted(count, 'dead letter waits', 'dead letters wait')} to be replayed or discarded`;
  const look = shownCommand(store.partitions.namespace, 'dead-letters');
  const advice = `Look at them: ${look}. Mend the handlers, then replay them. ${seePage('Handling session events')}`;
  return [warning(message, advice)];
});
