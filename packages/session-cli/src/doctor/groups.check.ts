import type { EventGroupInfo } from '@nest-session/core/internal';
import { shownCommand } from '@nest-session/redis-events/internal';
import { counted } from '../command/counted.js';
import { instanceStates } from '../command/instance-states.js';
import { shownDuration } from '../command/shown-time.js';
import { aliveIn, storeEvents } from '../command/store-events.js';
import { type Check, type Diagnosis, orOk, seePage, warning } from './diagnosis.js';

// Milliseconds.
const LATE = 300_000;

/**
 * Whether each group handles its events. What a group has lost before is said, and is no finding: it cannot be mended.
 */
export const GROUPS: Check = {
  ofStore: true,
  async look({ store }) {
    const { groups, lags } = storeEvents(store!);
    const [infos, readings, { alive }] = await Promise.all([groups.list(), lags.read(), instanceStates(store!)]);
    const findings = infos.flatMap((info) => {
      const age = readings.find(({ name }) => name === info.name)?.oldestUnreadAge ?? 0;
      return [...findingsOf(info, age, aliveIn(info, alive), store!.partitions.namespace)];
    });
    const lost = infos.filter(({ dropped, lostDeadLetters }) => dropped + lostDeadLetters > 0).map(shownLoss);
    return orOk(findings, [`${counted(infos.length, 'group')}, none of them late`, ...lost].join('; '));
  },
};

function* findingsOf(
  { name, lag }: EventGroupInfo,
  age: number,
  alive: number,
  namespace: string,
): Iterable<Diagnosis> {
  const shown = JSON.stringify(name);
  if (age > LATE) {
    yield warning(
      `Group ${shown} is late: it has not read ${counted(lag, 'event')}, the oldest of them from ${shownDuration(age)} ago`,
      'See the log of its instances. If its handlers are slow, add instances, or raise events.concurrency.',
    );
  }
  if (alive === 0) {
    yield warning(
      `Nobody reads the events of group ${shown}, and they are kept for it`,
      'Start an instance of the group. If it is no longer used: ' +
        shownCommand(namespace, 'groups', `--remove=${name}`, '--yes'),
    );
  }
}

function shownLoss({ name, dropped, lostDeadLetters }: EventGroupInfo): string {
  return `group ${JSON.stringify(name)} has lost ${counted(dropped, 'event')} and ${counted(lostDeadLetters, 'dead letter')}`;
}

/** Whether there are events that handlers could not handle. */
export const DEAD_LETTERS: Check = {
  ofStore: true,
  async look({ store }) {
    const { connection } = store!;
    const all = store!.partitions.all as readonly { readonly prefix: string; readonly deadLetters: string }[];
    const counts = await Promise.all(
      all.map(({ deadLetters, prefix }) => connection.run((client) => client.xlen(deadLetters), prefix)),
    );
    const count = counts.reduce((sum, each) => sum + each, 0);
    const message = `${count} ${count === 1 ? 'dead letter waits' : 'dead letters wait'} to be replayed or discarded`;
    const look = shownCommand(store!.partitions.namespace, 'dead-letters');
    const advice = `Look at them: ${look}. Mend the handlers, then replay them. ${seePage('Handling session events')}`;
    return orOk(count > 0 ? [warning(message, advice)] : [], 'There are no dead letters');
  },
};
