import { PRINCIPAL_NAME_INDEX_NAME, type SessionInfo } from '@nest-session/core';
import { beganAt } from '@nest-session/core/internal';
import { isReply } from '@nest-session/redis-events/internal';
import {
  hashOfPrincipal,
  hasIndexEntry,
  NO_KEY,
  type SessionKeys,
  type SessionPartitions,
  toListedInfo,
} from '@nest-session/redis/internal';
import type { OpenStore } from './store-access.js';

// Sessions that are read at once.
const PAGE_SIZE = 250;

interface Entry {
  readonly keys: SessionKeys;
  readonly id: string;
  readonly score: number;
}

/** The sessions of a user. */
export interface SessionsOfUser {
  /** How many the index lists, also those whose end nobody has noticed yet. */
  readonly total: number;
  /** The live ones among those of the page, the latest sign-in first. */
  readonly sessions: readonly SessionInfo[];
}

/**
 * Reads a page of the sessions of a user. It sends commands that read and nothing else: the script for this removes
 * what an outage has left in the index.
 */
export async function sessionsOfUser(
  store: OpenStore<SessionPartitions>,
  user: string,
  { skip, limit }: { readonly skip: number; readonly limit: number },
): Promise<SessionsOfUser> {
  const { connection, partitions } = store;
  const hash = hashOfPrincipal(user);
  const found = await connection.runInAll(partitions, async (client, keys) => {
    const index = keys.index(PRINCIPAL_NAME_INDEX_NAME, hash);
    const [count, rows, epoch] = await Promise.all([
      client.zcard(index),
      client.zrange(index, '0', `${skip + limit - 1}`, 'REV', 'WITHSCORES'),
      client.hget(keys.epoch, 'at'),
    ]);
    const entries = rows.flatMap((id, i) => (i % 2 === 0 ? [{ keys, id, score: Number(rows[i + 1]) }] : []));
    return { count, entries, epoch: [keys, Number(epoch ?? -Infinity)] as const };
  });
  const epochs = new Map(found.map(({ epoch }) => epoch));
  const entries = found.flatMap((each) => each.entries).sort((one, other) => other.score - one.score);
  const sessions: SessionInfo[] = [];
  const page = entries.slice(skip, skip + limit);
  for (let i = 0; i < page.length; i += PAGE_SIZE) {
    const infos = await Promise.all(page.slice(i, i + PAGE_SIZE).map((entry) => read(store, entry, hash)));
    infos.forEach((info, at) => {
      if (info && beganAt(info) > epochs.get(page[i + at]!.keys)!) sessions.push(info);
    });
  }
  return { total: found.reduce((sum, { count }) => sum + count, 0), sessions };
}

async function read({ connection }: OpenStore, { keys, id }: Entry, hash: string): Promise<SessionInfo | undefined> {
  const fields = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'authenticatedAt', 'device', 'index'];
  const found = await connection.run((client) => {
    const [hash, shadow] = [keys.session(id), keys.shadow(id)];
    // Only reading a shadow key tells it from a stray key.
    const replies = Promise.all([client.hmget(hash, ...fields), client.pttl(shadow), client.get(shadow)]);
    return replies.catch(noneIfStray);
  }, keys.prefix);
  if (!found) return undefined;
  const [texts, ttl] = found;
  const [created, accessed, interval, signedIn, device, index] = texts;
  // It may have got another user since the index was read.
  if (ttl === NO_KEY || !hasIndexEntry(index, PRINCIPAL_NAME_INDEX_NAME, hash)) return undefined;
  const orNull = (text: string | null | undefined) => text ?? null;
  return toListedInfo([id, ttl, orNull(created), orNull(accessed), orNull(interval), orNull(signedIn), orNull(device)]);
}

/** A stray key in the place of a session must not hide the others. */
function noneIfStray(error: unknown): undefined {
  if (!isReply(error, 'WRONGTYPE')) throw error;
}
