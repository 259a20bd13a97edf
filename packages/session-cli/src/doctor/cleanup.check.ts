import { setTimeout as pause } from 'node:timers/promises';
import type { PartitionKeys } from '@nest-session/redis-events/internal';
import { instanceStates } from '../command/instance-states.js';
import { shownDuration } from '../command/shown-time.js';
import { contentOf } from '../command/store-content.js';
import type { OpenStore } from '../command/store-access.js';
import { type Check, error, ok, seePage, warning } from './diagnosis.js';

// Milliseconds. A turn is free for the last tenth of the time between two ticks, and before the first tick: a minute by
// default.
const LONGEST_GAP = 65_000;
const INTERVAL = 500;
const LATE = 120_000;
const TOO_LATE = 300_000;

/** Whether instances take turns with the cleanup, which trims events and finds ends that nobody has noticed. */
export const CLEANUP: Check = {
  ofStore: true,
  async look({ store, call }) {
    const { alive } = await instanceStates(store!);
    let left = [...store!.partitions.all] as PartitionKeys[];
    for (let waited = 0; ; waited += INTERVAL) {
      left = await withoutTurn(store!, left);
      if (left.length === 0) return [ok('An instance has cleaned up in every partition since the last tick')];
      if (alive.length === 0 || waited >= LONGEST_GAP) break;
      call.output.progress('Waiting for the next cleanup');
      await pause(INTERVAL, undefined, { signal: call.signal });
    }
    const where = store!.partitions.count === 1 ? '' : ` of ${left.length} partitions`;
    return [
      warning(
        `Nobody has taken the turn for the cleanup${where}`,
        `Start an instance, or see its log for the cleanup. With a rare cleanup.cron, add --ignore cleanup. ${seePage('Operating')}`,
      ),
    ];
  },
};

async function withoutTurn({ connection }: OpenStore, all: PartitionKeys[]): Promise<PartitionKeys[]> {
  const found = await connection.runInAll({ all }, (client, { cleanup }) => client.exists(cleanup));
  return all.filter((_, i) => found[i] === 0);
}

/** Whether anything is due that nobody has claimed. */
export const OVERDUE: Check = {
  ofStore: true,
  async look({ store }) {
    const { overdue, deadlines = [] } = await contentOf(store!);
    const late = deadlines.filter((each) => each.overdue > LATE);
    const what =
      deadlines.length > 0 || store!.partitions.owner.holds === 'deadlines' ? 'deadline' : 'end of a session';
    if (overdue <= LATE) return [ok(`No ${what} waits for longer than two minutes`)];
    const names = late.length === 0 ? '' : ` (${late.map(({ name }) => JSON.stringify(name)).join(', ')})`;
    const message = `The oldest ${what} that nobody has noticed was due ${shownDuration(overdue)} ago${names}`;
    const advice =
      what === 'deadline'
        ? 'Deploy an instance with an @OnDeadline method for it, or see the log for the reason.'
        : 'See the log of the instances for the reason.';
    return [overdue > TOO_LATE ? error(message, advice) : warning(message, advice)];
  },
};
