import type { Redis } from 'ioredis';
import { redisTime } from '@nest-session/redis-events/internal';
import { SPRING_GRACE } from '../scripts/spring/spring.scripts.js';
import { isAlive, readSpringFields, readSpringSession, type SpringSession } from '../read/spring-session.js';
import type { SpringKey, SpringKeys } from '../keys/spring-keys.js';
import { formOf, type StoredForm } from '../values/stored-value.js';
import { readSecurityContext, SECURITY_CONTEXT } from '../values/spring-principal.js';

/** A session that was looked at more closely. */
export interface SampledSession {
  readonly id: string;
  readonly session: SpringSession;
  /** Of its values. */
  readonly forms: ReadonlySet<StoredForm>;
  /** The PTTL of its session hash. */
  readonly ttl: number;
  /** The clock of Redis, in epoch milliseconds. */
  readonly at: number;
}

/** Undefined if there is none, or no whole one. */
export async function sampleSession(client: Redis, keys: SpringKeys, id: string): Promise<SampledSession | undefined> {
  const key = keys.session(id);
  const [fields, ttl, at] = await Promise.all([readSpringFields(client, key), client.pttl(key), redisTime(client)]);
  const session = readSpringSession(fields);
  if (!session) return undefined;
  const forms = fields.map(([, stored]) => formOf(stored)).filter((form) => form !== undefined);
  return { id, session, forms: new Set(forms), ttl, at };
}

/** Whether its session hash is kept longer than it. The simple repository lets both expire together. */
export function outlivesItsSession({ session, ttl, at }: SampledSession): boolean {
  const { lastAccessedTime, maxInactiveInterval } = session;
  return ttl > 0 && at + ttl - lastAccessedTime - Math.max(0, maxInactiveInterval) * 1000 > SPRING_GRACE / 2;
}

/** Whether it is alive, and only the simple repository has written it. `shadows`: how many shadow keys it has. */
export function isOfSimpleRepository(sample: SampledSession, shadows: number): boolean {
  const { session, ttl, at } = sample;
  return shadows === 0 && ttl > 0 && isAlive(session, at) && !outlivesItsSession(sample);
}

/** Keys of each kind. */
export type KeyCounts = Record<SpringKey['kind'], number> & { indexOfPrincipals: number };

/** What the keys of a namespace say of the applications of Spring that use it. */
export interface SpringOverview {
  readonly repository: 'indexed' | 'simple';
  /** Where the indexed repository keeps when sessions end. */
  readonly expirations: 'buckets' | 'sorted-set' | undefined;
  /** `json`: no value is an object or a list, so it may be any JSON. Undefined: no session was whole. */
  readonly serializer: StoredForm | 'mixed' | undefined;
  /** Whether the ids are those that Spring makes. */
  readonly hasUuids: boolean;
  /** Users that have an index set. */
  readonly principals: number;
  readonly sessions: {
    readonly found: number;
    readonly sampled: number;
    readonly alive: number;
    /** With somebody who is signed in by Spring Security. */
    readonly signedIn: number;
  };
  /** Whether Spring Security keeps something in a session. */
  readonly hasSpringSecurity: boolean;
  /** Milliseconds by which the clock of an application is ahead of that of Redis. Undefined: nothing tells it. */
  readonly clockAhead: number | undefined;
  /** The names of attributes with a value that cannot be read. */
  readonly unreadableAttributes: readonly string[];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MOST_NAMES = 10;
const FEW = 5;

/** @param counts of the whole namespace */
export function springOverview(counts: KeyCounts, samples: readonly SampledSession[]): SpringOverview {
  const others = counts.shadow + counts.bucket + counts.expirations + counts.index;
  const isIndexed = others > 0 || samples.some(outlivesItsSession);
  const contexts = samples.map(({ session }) => readSecurityContext(session.attributes.get(SECURITY_CONTEXT)));
  return {
    repository: isIndexed ? 'indexed' : 'simple',
    expirations: counts.expirations > 0 ? 'sorted-set' : isIndexed ? 'buckets' : undefined,
    serializer: serializerOf(new Set(samples.flatMap(({ forms }) => [...forms]))),
    hasUuids: samples.every(({ id }) => UUID.test(id)),
    principals: counts.indexOfPrincipals,
    sessions: {
      found: counts.session,
      sampled: samples.length,
      alive: samples.filter(({ session, at }) => isAlive(session, at)).length,
      signedIn: contexts.filter((context) => context !== undefined).length,
    },
    hasSpringSecurity: samples.some(({ session }) => session.attributes.has(SECURITY_CONTEXT)),
    clockAhead: clockAhead(samples, isIndexed),
    unreadableAttributes: unreadableIn(samples),
  };
}

function serializerOf(forms: ReadonlySet<StoredForm>): SpringOverview['serializer'] {
  if (forms.has('java')) return forms.size > 1 ? 'mixed' : 'java';
  // With classes, an immutable list has none. And plain JSON names no class.
  return (['security-json', 'typed-json', 'plain-json', 'json'] as const).find((form) => forms.has(form));
}

/**
 * The indexed repository lets the session hash expire at a time after the save, and writes by its own clock when the
 * request began, so the shortest request tells the difference. The simple one computes both, and only the future
 * betrays it.
 */
function clockAhead(samples: readonly SampledSession[], isIndexed: boolean): number | undefined {
  const differences = samples.flatMap(({ session: { lastAccessedTime, maxInactiveInterval }, ttl, at }) => {
    const savedAt = at + ttl - maxInactiveInterval * 1000 - SPRING_GRACE;
    if (isIndexed) return maxInactiveInterval > 0 && ttl > 0 ? [lastAccessedTime - savedAt] : [];
    return lastAccessedTime > at ? [lastAccessedTime - at] : [];
  });
  if (differences.length === 0) return undefined;
  const ahead = Math.max(...differences);
  // All of a few requests may have been slow.
  return ahead < 0 && differences.length < FEW ? 0 : ahead;
}

function unreadableIn(samples: readonly SampledSession[]): string[] {
  const names = new Set<string>();
  for (const { session } of samples) {
    for (const [name, value] of session.attributes) if (value === undefined) names.add(name);
  }
  return [...names].toSorted().slice(0, MOST_NAMES);
}
