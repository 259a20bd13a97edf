import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import { redisTime } from '@nest-session/redis-events/internal';
import { hashOfPrincipal, ListedSessions, raiseEpochs, type SessionPartitions } from '@nest-session/redis/internal';
import type { CommandCall, ExitCode, StoreAddress } from './command.js';
import { counted, shownTime } from './shown.js';
import { noSession } from './show.command.js';
import { type OpenStore, sessionScriptsOf, withSessions, WRITES } from './store-access.js';
import { MORE, UsageError } from './usage.error.js';

type Store = OpenStore<SessionPartitions>;

/** Ends sessions as `Sessions.end()`, `Sessions.endAll()` and `Sessions.endEverySession()` do, with their events. */
export function run(call: CommandCall): Promise<ExitCode> {
  const end = chosen(call);
  const address = { ...call.address, ...endingOptions(call) };
  return withSessions({ ...call, address }, end, WRITES);
}

function chosen(call: CommandCall): (store: Store) => Promise<ExitCode> {
  const { argument: id, values } = call;
  const { user, 'begun-before': begunBefore } = values;
  if ([id, user, begunBefore].filter((each) => each !== undefined).length !== 1)
    throw new UsageError('end needs one of <id>, --user <name> and --begun-before <time>.');
  if (user === '') throw new UsageError('--user must not be empty.');
  if (id !== undefined) return (store) => endOne(call, store, id);
  if (user !== undefined) return (store) => endAll(call, store, user);
  const at = zonedTime(begunBefore!);
  if (call.flags.has('yes')) return (store) => endOlder(call, store, at);
  const until = at === undefined ? 'now' : shownTime(at);
  throw new UsageError(
    `This ends every session that was created and signed in to until ${until}. Add --yes to do that.`,
  );
}

async function endOne({ output }: CommandCall, store: Store, id: string): Promise<ExitCode> {
  const { connection, partitions, shownId } = store;
  if (!isWellFormedIdOrToken(id)) throw noSession(store, id);
  const scripts = sessionScriptsOf(store);
  const { outcome } = await connection.write((client) => scripts(client).delete(id), partitions.of(id).prefix);
  if (outcome === 'gone') throw noSession(store, id);
  return output.report({ ended: 1 }, [`Session ${shownId(id)} has ended.`]);
}

async function endAll({ flags, output }: CommandCall, store: Store, user: string): Promise<ExitCode> {
  const sessions = new ListedSessions(store.connection, sessionScriptsOf(store), store.partitions);
  const listed = [PRINCIPAL_NAME_INDEX_NAME, hashOfPrincipal(user)] as const;
  const count = await sessions.count(...listed);
  if (count > 1 && !flags.has('yes')) {
    throw new UsageError(`The user has ${count} sessions. Add --yes to end all of them.`);
  }
  // The command cannot know whether an application takes over sessions of connect-redis. This costs one key.
  await sessions.refuseBegun(...listed, true);
  const ended = await sessions.end(...listed, [], (some) => output.progress(`${some} of ${counted(count, 'session')}`));
  return output.report({ ended }, [`${counted(ended, 'session has', 'sessions have')} ended.`]);
}

/** `at`: epoch milliseconds, undefined for now. */
async function endOlder({ output }: CommandCall, store: Store, at: number | undefined): Promise<ExitCode> {
  const { connection, partitions } = store;
  if (at !== undefined) {
    const now = Math.min(...(await connection.runInAll(partitions, redisTime)));
    // Sessions that begin until then would be refused.
    if (at > now)
      throw new UsageError(`--begun-before is ${shownTime(at)}, but the clock of Redis says ${shownTime(now)}.`);
  }
  const begunBefore = await raiseEpochs(connection, sessionScriptsOf(store), partitions, at);
  return output.report({ begunBefore, recordedBy: 'instances' }, [
    `Every session that was created and signed in to until ${shownTime(begunBefore)} is over.`,
    'Running instances refuse these sessions within 2 seconds, and record their ends. If none runs, the first one that starts does.',
  ]);
}

/** A command does not know the grace period of the application, so it allows any retention from one second on. */
export function endingOptions({ values }: Pick<CommandCall, 'values'>): Pick<StoreAddress, 'grace' | 'events'> {
  return { grace: '1s', events: { retention: values['retention'] } };
}

const FORM = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** In epoch milliseconds; undefined for `now`. Without a zone, it would be another time on each machine. */
function zonedTime(given: string): number | undefined {
  if (given === 'now') return undefined;
  const day = new Date(`${FORM.exec(given)?.[1]}T00:00Z`);
  const at = Date.parse(given);
  // JavaScript takes the 30th of February for a day in March.
  if (!Number.isNaN(day.getTime()) && given.startsWith(day.toISOString().slice(0, 10)) && at > 0) return at;
  throw new UsageError(
    `--begun-before must be now, or a time with its zone such as 2026-11-26T12:00:00Z, but is ${JSON.stringify(given)}. ${MORE}`,
  );
}
