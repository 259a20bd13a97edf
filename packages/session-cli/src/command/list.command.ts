import { PRINCIPAL_NAME_INDEX_NAME, type SessionInfo } from '@nest-session/core';
import { beganAt } from '@nest-session/core/internal';
import { ifStray } from '@nest-session/redis-events/internal';
import {
  batchesOf,
  hashOfPrincipal,
  hasIndexEntry,
  NO_KEY,
  type SessionKeys,
  type SessionPartitions,
  toListedInfo,
} from '@nest-session/redis/internal';
import type { CommandCall, ExitCode } from './command.js';
import { columns, shownDuration, shownTime } from './shown.js';
import { type OpenStore, withSessions } from './store-access.js';
import { wholeNumber } from './usage.error.js';

export function run(call: CommandCall): Promise<ExitCode> {
  const { user = '', limit: most = '100', skip: first = '0' } = call.values;
  const limit = wholeNumber('limit', most, { atLeast: 1, atMost: 10_000 });
  const skip = wholeNumber('skip', first);
  return withSessions(call, async (store) => {
    const { total, sessions } = await sessionsOf(store, hashOfPrincipal(user), skip, limit);
    const told = sessions.map((info) => ({ ...info, id: store.shownId(info.id) }));
    const left = total - skip - limit;
    const hasOthers = left > 0 || (skip > 0 && total > 0);
    const nobody = `There are no live sessions${hasOthers ? ' on this page' : ''}.`;
    const lines = [...columns(TITLES, told.map(rowOf), nobody)];
    if (left > 0) lines.push(`${left} more: add --skip ${skip + limit}`);
    return call.output.report({ total, sessions: told }, lines);
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

const PAGE_SIZE = 250;

// It reads only: the script for this removes what an outage has left in the index. `total` also counts sessions whose
// end nobody has noticed yet.
async function sessionsOf(store: OpenStore<SessionPartitions>, hash: string, skip: number, limit: number) {
  const found = await store.connection.runInAll(store.partitions, async (client, keys) => {
    const index = keys.index(PRINCIPAL_NAME_INDEX_NAME, hash);
    const [count, rows, epoch] = await Promise.all([
      client.zcard(index),
      client.zrange(index, '0', `${skip + limit - 1}`, 'REV', 'WITHSCORES'),
      client.hget(keys.epoch, 'at'),
    ]);
    const since = Number(epoch ?? -Infinity);
    return { count, entries: rows.flatMap((id, i) => (i % 2 === 0 ? [{ keys, id, score: rows[i + 1]!, since }] : [])) };
  });
  const entries = found.flatMap((each) => each.entries).sort((one, other) => Number(other.score) - Number(one.score));
  const page = entries.slice(skip, skip + limit);
  const sessions: SessionInfo[] = [];
  for (const some of batchesOf(page, PAGE_SIZE)) {
    const infos = await Promise.all(some.map(({ keys, id }) => read(store, keys, id, hash)));
    sessions.push(...infos.filter((info, at) => info && beganAt(info) > some[at]!.since).map((info) => info!));
  }
  return { total: found.reduce((sum, { count }) => sum + count, 0), sessions };
}

async function read({ connection }: OpenStore, keys: SessionKeys, id: string, principal: string) {
  const fields = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'authenticatedAt', 'device', 'index'];
  const found = await connection.run((client) => {
    const [hash, shadow] = [keys.session(id), keys.shadow(id)];
    // Only reading a shadow key tells it from a stray key.
    const replies = Promise.all([client.hmget(hash, ...fields), client.pttl(shadow), client.get(shadow)]);
    // It must not hide the other sessions.
    return replies.catch(ifStray(undefined));
  }, keys.prefix);
  if (!found) return undefined;
  const [[created = null, accessed = null, interval = null, signedIn = null, device = null, index], ttl] = found;
  // It may have got another user since the index was read.
  if (ttl === NO_KEY || !hasIndexEntry(index, PRINCIPAL_NAME_INDEX_NAME, principal)) return undefined;
  return toListedInfo([id, ttl, created, accessed, interval, signedIn, device]);
}
