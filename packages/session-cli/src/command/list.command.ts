import type { SessionInfo } from '@nest-session/core';
import { columns } from './columns.js';
import type { CommandCall, ExitCode } from './command.js';
import { withSessions } from './store-access.js';
import { shownDuration, shownTime } from './shown-time.js';
import { sessionsOfUser } from './stored-sessions.js';
import { wholeNumber } from './whole-number.js';

/** The sessions of a user. */
export function run(call: CommandCall): Promise<ExitCode> {
  const { user = '', limit = '100', skip = '0' } = call.values;
  const page = {
    limit: wholeNumber('limit', limit, { atLeast: 1, atMost: 10_000 }),
    skip: wholeNumber('skip', skip),
  };
  return withSessions<ExitCode>(call, async (store) => {
    const { total, sessions } = await sessionsOfUser(store, user, page);
    const told = sessions.map((info) => ({ ...info, id: store.shownId(info.id) }));
    const left = total - page.skip - page.limit;
    const hasOthers = left > 0 || (page.skip > 0 && total > 0);
    const nobody = `There are no live sessions${hasOthers ? ' on this page' : ''}.`;
    const lines = told.length === 0 ? [nobody] : [...columns(TITLES, told.map(rowOf))];
    if (left > 0) lines.push(`${left} more: add --skip ${page.skip + page.limit}`);
    call.output.report({ total, sessions: told }, lines);
    return 0;
  });
}

const TITLES = ['ID', 'CREATED', 'SIGNED IN', 'LAST USED', 'ENDS IN', 'DEVICE'];

function rowOf({ id, creationTime, authenticatedAt, lastAccessedTime, timeToLive, device }: SessionInfo): string[] {
  const client = [device?.address, device?.userAgent].filter((part) => part !== undefined);
  return [
    id,
    shownTime(creationTime),
    shownTime(authenticatedAt),
    shownTime(lastAccessedTime),
    shownDuration(timeToLive),
    client.length === 0 ? '-' : JSON.stringify(client.join(' ')),
  ];
}
