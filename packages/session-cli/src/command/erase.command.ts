import type { SessionPartitions } from '@nest-session/redis/internal';
import { SharedUserErasure } from '../erasure/shared-user-erasure.js';
import { type Erased, UserErasure } from '../erasure/user-erasure.js';
import type { CommandCall, ExitCode } from './command.js';
import { type OpenStore, READS, withSessions, WRITES } from './store-access.js';

/** Erases what is kept of a user. */
export async function run(call: CommandCall): Promise<ExitCode> {
  const { values, flags, signal, output } = call;
  const isRehearsal = !flags.has('yes');
  const onProgress = (looked: number) => output.progress(`${looked} keys and events`);
  const options = { isRehearsal, signal, onProgress };
  const erase = ({ connections: { background }, partitions }: OpenStore<SessionPartitions>) => {
    const Erasure = partitions.owner.holds === 'shared-sessions' ? SharedUserErasure : UserErasure;
    return new Erasure(background, partitions, values['user']!, options).run();
  };
  const erased = await withSessions(call, erase, { ...(isRehearsal ? READS : WRITES), knowsShared: true });
  const found = Object.values(erased).some((count) => count > 0);
  output.report({ ...erased, erased: !isRehearsal }, linesOf(erased, isRehearsal && found));
  return isRehearsal && found ? 2 : 0;
}

function linesOf({ live, ended, events, deadLetters, ledgers }: Erased, isRehearsal: boolean): string[] {
  return [
    `live sessions: ${live}`,
    `ended sessions, whose data was kept for handlers: ${ended}`,
    `events: ${events}`,
    `dead letters: ${deadLetters}`,
    `records of how many sessions the user has: ${ledgers}`,
    ...(isRehearsal ? ['Nothing is erased yet. To erase it, run the command again with --yes.'] : []),
  ];
}
