import { shownText } from '@nest-session/core/internal';
import type { CommandCall, ExitCode } from './command.js';
import { columns, shownDuration } from './shown.js';
import { withStore, WRITES } from './store-access.js';
import { groupsOf, storeEvents } from './store-content.js';
import { UsageError } from './usage.error.js';

export async function run(call: CommandCall): Promise<ExitCode> {
  const { remove: name } = call.values;
  if (name !== undefined) return remove(call, name);
  const groups = await withStore(call, groupsOf);
  const titles = ['GROUP', 'UNREAD', 'OLDEST', 'PENDING', 'RETRYING', 'DEAD', 'DROPPED', 'DEAD LOST', 'INSTANCES'];
  const rows = groups.map((each) => [
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
  const nobody = 'There are no groups. An instance with handlers creates its group when it starts.';
  return call.output.report({ groups }, columns(titles, rows, nobody));
}

async function remove(call: CommandCall, name: string): Promise<ExitCode> {
  const shown = JSON.stringify(name);
  if (!call.flags.has('yes')) {
    throw new UsageError(
      `Nothing is kept for a group that is removed, and its unread events are lost. Add --yes to remove ${shown}.`,
    );
  }
  const reply = await withStore(call, (store) => storeEvents(store).groups.remove(name), WRITES);
  if (reply === 'unknown') throw new UsageError(`There is no group ${shown}.`);
  if (reply === 'live')
    throw new UsageError(`Group ${shown} has instances that are alive, and nothing was removed. Stop them first.`);
  return call.output.report({ removed: name }, [`Group ${shown} is removed.`]);
}
