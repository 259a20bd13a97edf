import type { SessionRecord } from '@nest-session/core/store';

const ATTRIBUTE = 'sessionAttr:';

/**
 * The session in a session hash; undefined when the hash is empty or incomplete.
 * `ttl`: PTTL of the shadow key, for a live session.
 */
export function toSessionRecord(id: string, hash: Record<string, string>, ttl?: number): SessionRecord | undefined {
  const creationTime = Number(hash['creationTime']);
  const lastAccessedTime = Number(hash['lastAccessedTime']);
  const maxInactiveInterval = Number(hash['maxInactiveInterval']);
  if (![creationTime, lastAccessedTime, maxInactiveInterval].every(Number.isFinite)) return undefined;
  const attributes = Object.entries(hash)
    // Spring Session removes an attribute by emptying its field.
    .filter(([field, text]) => field.startsWith(ATTRIBUTE) && text !== '')
    .map(([field, text]) => [field.slice(ATTRIBUTE.length), text] as const);
  const absoluteExpiry = Number(hash['absoluteExpiry'] ?? NaN);
  const absoluteTimeout = Number.isFinite(absoluteExpiry) ? Math.round((absoluteExpiry - creationTime) / 1000) : -1;
  // PTTL is -1 for a key that never expires.
  const timeToLive = ttl === undefined || ttl < 0 ? undefined : ttl;
  return { id, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributes, timeToLive };
}
