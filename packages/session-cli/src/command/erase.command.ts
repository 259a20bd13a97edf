import { SharedUserErasure } from '../erasure/shared-user-erasure.js';
import { UserErasure } from '../erasure/user-erasure.js';
import type { CommandCall, ExitCode } from './command.js';
import { withSessions } from './store-access.js';

export async function run(call: CommandCall): Promise<ExitCode> {
  const { values, flags, signal, output } = call;
  const isRehearsal = !flags.has('yes');
  const onProgress = (looked: number) => output.progress(`${looked} keys and events`);
  const erased = await withSessions(
    call,
    ({ connections: { background }, partitions }) => {
      const Erasure = partitions.owner.holds === 'shared-sessions' ? SharedUserErasure : UserErasure;
      return new Erasure(background, partitions, values['user']!, { isRehearsal, signal, onProgress }).run();
    },
    { writes: !isRehearsal, knowsShared: true },
  );
  const { live, ended, events, deadLetters, ledgers } = erased;
  const lines = [
    `live sessions: ${live}`,
    `ended sessions, whose data was kept for handlers: ${ended}`,
    `events: ${events}`,
    `dead letters: ${deadLetters}`,
    `records of how many sessions the user has: ${ledgers}`,
  ];
  const remains = isRehearsal && Object.values(erased).some((count) => count > 0);
  if (remains) lines.push('Nothing is erased yet. To erase it, run the command again with --yes.');
  return output.report({ ...erased, erased: !isRehearsal }, lines, remains ? 2 : 0);
}
