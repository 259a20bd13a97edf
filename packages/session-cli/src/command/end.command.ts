import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import { redisTime, scriptsOn } from '@nest-session/redis-events/internal';
import {
  hashOfPrincipal,
  keepingRules,
  ListedSessions,
  raiseEpochs,
  type SessionPartitions,
  SessionScripts,
} from '@nest-session/redis/internal';
import type { CommandCall, ExitCode } from './command.js';
import { counted } from './counted.js';
import { endingOptions } from './ending-options.js';
import { noSession } from './show.command.js';
import { shownTime } from './shown-time.js';
import { type OpenStore, withSessions, WRITES } from './store-access.js';
import { UsageError } from './usage.error.js';
import { zonedTime } from './zoned-time.js';

type Store = OpenStore<SessionPartitions>;

/** Ends sessions as `Sessions.end()`, `Sessions.endAll()` and `Sessions.endEverySession()` do, with their events. */
export function run(call: CommandCall): Promise<ExitCode> {
  const end = chosen(call);
  const address = { ...call.address, ...endingOptions(call) };
  return withSessions({ ...call, address }, end, WRITES);
}

/** What ends the sessions that a call names. @throws UsageError unless it names them in one way */
function chosen(call: CommandCall): (store: Store) => Promise<ExitCode> {
  const { argument: id, values } = call;
  const { user, 'begun-before': begunBefore } = values;
  if ([id, user, begunBefore].filter((each) => each !== undefined).length !== 1)
    throw new UsageError('end needs one of <id>, --user <name> and --begun-before <time>.');
  if (user === '') throw new UsageError('--user must not be empty.');
  if (id !== undefined) return (store) => endOne(call, store, id);
  if (user !== undefined) return (store) => endAll(call, store, user);
  const at = zonedTime('begun-before', begunBefore!);
  if (call.flags.has('yes')) return (store) => endOlder(call, store, at);
  const until = at === undefined ? 'now' : shownTime(at);
  throw new UsageError(
    `This ends every session that was created and signed in to until ${until}. Add --yes to do that.`,
  );
}

async function endOne({ output }: CommandCall, store: Store, id: string): Promise<ExitCode> {
  const { connection, partitions, shownId } = store;
  if (!isWellFormedIdOrToken(id)) throw noSession(store, id);
  const scripts = scriptsIn(store);
  const { outcome } = await connection.write((client) => scripts(client).delete(id), partitions.of(id).prefix);
  if (outcome === 'gone') throw noSession(store, id);
  output.report({ ended: 1 }, [`Session ${shownId(id)} has ended.`]);
  return 0;
}

async function endAll({ flags, output }: CommandCall, store: Store, user: string): Promise<ExitCode> {
  const sessions = new ListedSessions(store.connection, scriptsIn(store), store.partitions);
  const listed = [PRINCIPAL_NAME_INDEX_NAME, hashOfPrincipal(user)] as const;
  const count = await sessions.count(...listed);
  if (count > 1 && !flags.has('yes')) {
    throw new UsageError(`The user has ${count} sessions. Add --yes to end all of them.`);
  }
  // The command cannot know whether an application takes over sessions of connect-redis. This costs one key.
  await sessions.refuseBegun(...listed, true);
  const ended = await sessions.end(...listed, [], (some) => output.progress(`${some} of ${counted(count, 'session')}`));
  output.report({ ended }, [`${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`]);
  return 0;
}

/** `at`: epoch milliseconds, undefined for now. */
async function endOlder({ output }: CommandCall, store: Store, at: number | undefined): Promise<ExitCode> {
  const { connection, partitions } = store;
  if (at !== undefined) await refuseFuture(store, at);
  const begunBefore = await raiseEpochs(connection, scriptsIn(store), partitions, at);
  output.report({ begunBefore, recordedBy: 'instances' }, [
    `Every session that was created and signed in to until ${shownTime(begunBefore)} is over.`,
    'Running instances refuse these sessions within 2 seconds, and record their ends. If none runs, the first one that starts does.',
  ]);
  return 0;
}

/** Sessions that begin until then would be refused. */
async function refuseFuture({ connection, partitions }: Store, at: number): Promise<void> {
  const now = Math.min(...(await connection.runInAll(partitions, redisTime)));
  if (at > now)
    throw new UsageError(`--begun-before is ${shownTime(at)}, but the clock of Redis says ${shownTime(now)}.`);
}

function scriptsIn({ options, partitions }: Store) {
  return scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions)));
}
