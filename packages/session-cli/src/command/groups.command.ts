import { shownText } from '@nest-session/core/internal';
import { columns } from './columns.js';
import type { CommandCall, ExitCode } from './command.js';
import { instanceStates } from './instance-states.js';
import { withStore, WRITES } from './store-access.js';
import { aliveIn, storeEvents } from './store-events.js';
import { shownDuration } from './shown-time.js';
import { UsageError } from './usage.error.js';

/** The groups that handle events. */
export function run(call: CommandCall): Promise<ExitCode> {
  return call.values['remove'] === undefined ? list(call) : remove(call, call.values['remove']);
}

function list(call: CommandCall): Promise<ExitCode> {
  return withStore<ExitCode>(call, async (store) => {
    const { groups, lags } = storeEvents(store);
    const [infos, readings, { alive }] = await Promise.all([groups.list(), lags.read(), instanceStates(store)]);
    const told = infos.map((info) => {
      const reading = readings.find(({ name }) => name === info.name);
      const { oldestUnread: _, consumers: __, ...numbers } = info;
      return {
        ...numbers,
        oldestUnreadAge: info.oldestUnread === undefined ? 0 : (reading?.oldestUnreadAge ?? 0),
        deadLetters: reading?.deadLetters ?? 0,
        instances: aliveIn(info, alive),
      };
    });
    const titles = ['GROUP', 'UNREAD', 'OLDEST', 'PENDING', 'RETRYING', 'DEAD', 'DROPPED', 'DEAD LOST', 'INSTANCES'];
    const rows = told.map((each) => [
      shownText(each.name),
      each.lag,
      shownDuration(each.oldestUnreadAge),
      each.pending,
      each.retrying,
      each.deadLetters,
      each.dropped,
      each.lostDeadLetters,
      each.instances,
    ]);
    const nobody = ['There are no groups. An instance with handlers creates its group when it starts.'];
    call.output.report({ groups: told }, told.length === 0 ? nobody : columns(titles, rows));
    return 0;
  });
}

async function remove(call: CommandCall, name: string): Promise<ExitCode> {
  if (!call.flags.has('yes')) {
    throw new UsageError(
      `Nothing is kept for a group that is removed, and its unread events are lost. Add --yes to remove ${JSON.stringify(name)}.`,
    );
  }
  const reply = await withStore(call, (store) => storeEvents(store).groups.remove(name), WRITES);
  if (reply === 'unknown') throw new UsageError(`There is no group ${JSON.stringify(name)}.`);
  if (reply === 'live') {
    throw new UsageError(
      `Group ${JSON.stringify(name)} has instances that are alive, and nothing was removed. Stop them first.`,
    );
  }
  call.output.report({ removed: name }, [`Group ${JSON.stringify(name)} is removed.`]);
  return 0;
}
