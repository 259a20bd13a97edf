import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import type { SessionPartitions } from '../keys/session-partitions.js';
import { hashOfValue } from '../repository/hashed-indexes.js';
import { ListedSessions } from '../repository/listed-sessions.js';
import { scriptsOn } from '../scripts/define-scripts.js';
import { keepingRules } from '../scripts/session/keeping-rules.js';
import { SessionScripts } from '../scripts/session/session.scripts.js';
import type { Command, CommandCall, ExitCode } from './command.js';
import { noSession } from './show.command.js';
import { type OpenStore, withSessions, WRITES } from './store-access.js';
import { UsageError } from './usage.error.js';

/** Ends sessions as `Sessions.end()` and `Sessions.endAll()` do, with their events. */
export const END: Command = {
  name: 'end',
  text: 'Ends one session, or all sessions of a user, and records their events.',
  argument: { value: '<id>', text: 'the session id, as logs show it' },
  options: {
    user: { value: '<name>', text: 'all sessions of this user instead' },
    retention: { value: '<time>', text: 'the option events.retention (default 1h)' },
    yes: { text: 'end several sessions' },
  },
  run(call) {
    const { argument: id, values } = call;
    const { user } = values;
    if ((id === undefined) === (user === undefined)) throw new UsageError('end needs either <id> or --user <name>.');
    const address = { ...call.address, events: { retention: values['retention'] } };
    const end = (store: OpenStore<SessionPartitions>) =>
      user === undefined ? endOne(call, store, id!) : endAll(call, store, user);
    return withSessions({ ...call, address }, end, WRITES);
  },
};

async function endOne({ output }: CommandCall, store: OpenStore<SessionPartitions>, id: string): Promise<ExitCode> {
  const { connection, partitions, shownId } = store;
  if (!isWellFormedIdOrToken(id)) throw noSession(store, id);
  const scripts = scriptsIn(store);
  const { outcome } = await connection.write((client) => scripts(client).delete(id), partitions.of(id).prefix);
  if (outcome === 'gone') throw noSession(store, id);
  output.report({ ended: 1 }, [`Session ${shownId(id)} has ended.`]);
  return 0;
}

async function endAll(call: CommandCall, store: OpenStore<SessionPartitions>, user: string): Promise<ExitCode> {
  const sessions = new ListedSessions(store.connection, scriptsIn(store), store.partitions);
  const listed = [PRINCIPAL_NAME_INDEX_NAME, hashOfValue(user)] as const;
  const count = await sessions.count(...listed);
  if (count > 1 && !call.flags.has('yes')) {
    throw new UsageError(`The user has ${count} sessions. Add --yes to end all of them.`);
  }
  // The command cannot know whether an application takes over sessions of connect-redis. This costs one key.
  await sessions.refuseTakeovers(...listed);
  const ended = await sessions.end(...listed, []);
  call.output.report({ ended }, [`${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`]);
  return 0;
}

function scriptsIn({ options, partitions }: OpenStore<SessionPartitions>) {
  return scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions)));
}
