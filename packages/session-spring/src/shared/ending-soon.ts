import type { Redis } from 'ioredis';
import { isReply } from '@nest-session/redis-events/internal';
import { pages } from '@nest-session/redis/internal';
import type { SpringKeys } from '../keys/spring-keys.js';
import { readStoredValue } from '../values/stored-value.js';

const MINUTE = 60_000;
const PER_PAGE = 500;
const MEMBER = 'expires:';

/**
 * Pages of the ids that Spring has in the buckets of some minutes from `now` on, and in its sorted set of expirations.
 */
export async function* idsEndingSoon(
  client: Redis,
  keys: SpringKeys,
  now: number,
  minutes: number,
): AsyncIterable<string[]> {
  const first = Math.floor(now / MINUTE) * MINUTE;
  for (let i = 0; i <= minutes; i++) {
    const bucket = `${keys.prefix}expirations:${first + i * MINUTE}`;
    const read = async (cursor: string): Promise<[string, Buffer[]]> => {
      const [next, members] = await client.sscanBuffer(bucket, cursor, 'COUNT', PER_PAGE);
      return [next.toString(), members];
    };
    for await (const page of unlessReplaced(pages(read))) yield textsOf(page).flatMap(idOfMember);
  }
  const until = now + minutes * MINUTE;
  for (let from = 0, size = PER_PAGE; size === PER_PAGE; from += size) {
    const members = await client
      .zrangebyscoreBuffer(`${keys.prefix}sessions:expirations`, 0, until, 'LIMIT', from, PER_PAGE)
      .catch(ifReplaced);
    size = members.length;
    yield textsOf(members);
  }
}

function textsOf(members: readonly Buffer[]): string[] {
  return members.map((member) => readStoredValue(member)).filter((value) => typeof value === 'string');
}

function idOfMember(member: string): string[] {
  return member.startsWith(MEMBER) ? [member.slice(MEMBER.length)] : [];
}

/** A key of another type in the place of a set has no members. */
async function* unlessReplaced<T>(all: AsyncIterable<T[]>): AsyncIterable<T[]> {
  try {
    yield* all;
  } catch (error) {
    yield ifReplaced(error);
  }
}

function ifReplaced(error: unknown): never[] {
  if (isReply(error, 'WRONGTYPE')) return [];
  throw error;
}
