import type { Cluster, Redis } from 'ioredis';
import { isCluster, type Pace, patternOf, redisTime } from '@nest-session/redis-events/internal';
import { pages } from '@nest-session/redis/internal';
import { SPRING_GRACE } from '../scripts/spring/spring.scripts.js';
import { isAlive, readSpringFields, readSpringSession } from '../read/spring-session.js';
import type { SpringKey, SpringKeys } from '../keys/spring-keys.js';
import { formOf, type StoredForm } from '../values/stored-value.js';
import { SECURITY_CONTEXT } from '../values/spring-principal.js';

export type SampledSession = NonNullable<Awaited<ReturnType<typeof sampleSession>>>;

/** Undefined if there is no whole session. `ttl`: of the hash. `at`: epoch milliseconds, by the clock of Redis. */
export async function sampleSession(client: Redis, keys: SpringKeys, id: string) {
  const key = keys.session(id);
  const [fields, ttl, at] = await Promise.all([readSpringFields(client, key), client.pttl(key), redisTime(client)]);
  const session = readSpringSession(fields);
  if (!session) return undefined;
  const forms = new Set(fields.map(([, stored]) => formOf(stored)).filter((form) => form !== undefined));
  return { id, session, forms, ttl, at };
}

/** Whether its session hash is kept longer than it. The simple repository lets both expire together. */
function outlivesItsSession({ session, ttl, at }: SampledSession): boolean {
  const { lastAccessedTime, maxInactiveInterval } = session;
  return ttl > 0 && at + ttl - lastAccessedTime - Math.max(0, maxInactiveInterval) * 1000 > SPRING_GRACE / 2;
}

/** Whether it is alive, and only the simple repository has written it. `shadows`: how many shadow keys it has. */
export function isOfSimpleRepository(sample: SampledSession, shadows: number): boolean {
  const { session, ttl, at } = sample;
  return shadows === 0 && ttl > 0 && isAlive(session, at) && !outlivesItsSession(sample);
}

type KeyCounts = Record<SpringKey['kind'], number>;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MOST_NAMES = 10;
const FEW = 5;

export type SpringOverview = ReturnType<typeof springOverview>;

function springOverview(counts: KeyCounts, samples: readonly SampledSession[]) {
  const others = counts.shadow + counts.bucket + counts.expirations + counts.index + counts.principals;
  const isIndexed = others > 0 || samples.some(outlivesItsSession);
  const inBuckets = isIndexed ? ('buckets' as const) : undefined;
  return {
    repository: isIndexed ? ('indexed' as const) : ('simple' as const),
    // Where the indexed repository keeps when sessions end.
    expirations: counts.expirations > 0 ? ('sorted-set' as const) : inBuckets,
    serializer: serializerOf(new Set(samples.flatMap(({ forms }) => [...forms]))),
    // Whether the ids are those that Spring makes.
    hasUuids: samples.every(({ id }) => UUID.test(id)),
    // Users that have an index set.
    principals: counts.principals,
    sessions: {
      found: counts.session,
      sampled: samples.length,
      alive: samples.filter(({ session, at }) => isAlive(session, at)).length,
      // With somebody who is signed in by Spring Security.
      signedIn: samples.filter(({ session }) => session.user !== undefined).length,
    },
    hasSpringSecurity: samples.some(({ session }) => session.attributes.has(SECURITY_CONTEXT)),
    clockAhead: clockAhead(samples, isIndexed),
    unreadableAttributes: unreadableIn(samples),
  };
}

/** `json`: no value is an object or a list, so it may be any JSON. Undefined: no session was whole. */
function serializerOf(forms: ReadonlySet<StoredForm>): StoredForm | 'mixed' | undefined {
  if (forms.has('java')) return forms.size > 1 ? 'mixed' : 'java';
  // With classes, an immutable list has none. And plain JSON names no class.
  return (['security-json', 'typed-json', 'plain-json', 'json'] as const).find((form) => forms.has(form));
}

/**
 * Milliseconds by which the clock of an application is ahead of that of Redis. Undefined: nothing tells it.
 *
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

interface SpringLookOptions {
  readonly sample: number;
  readonly pace: Pace;
  readonly onProgress: (looked: number) => void;
}

const SCANNED_PER_CALL = 500;

/** Beside the applications that use the namespace. It changes nothing. */
export async function lookAtSpring(
  client: Redis,
  keys: SpringKeys,
  { sample, pace, onProgress }: SpringLookOptions,
): Promise<SpringOverview> {
  const counts: KeyCounts = { session: 0, shadow: 0, bucket: 0, expirations: 0, index: 0, principals: 0 };
  const samples: SampledSession[] = [];
  for await (const page of scanned(client, keys)) {
    await pace.pass(page.length);
    onProgress(pace.passed);
    const known = page.map((key) => keys.read(key)).filter((key) => key !== undefined);
    for (const { kind } of known) counts[kind]++;
    const ids = known.flatMap((key) => (key.kind === 'session' ? key.id : []));
    const some = ids.slice(0, sample - samples.length);
    const sampled = await Promise.all(some.map((id) => sampleSession(client, keys, id)));
    samples.push(...sampled.filter((each) => each !== undefined));
  }
  return springOverview(counts, samples);
}

async function* scanned(client: Redis | Cluster, { prefix }: SpringKeys): AsyncIterable<string[]> {
  const nodes = isCluster(client) ? client.nodes('master') : [client];
  for (const node of nodes) {
    yield* pages((cursor) => node.scan(cursor, 'MATCH', `${patternOf(prefix)}*`, 'COUNT', SCANNED_PER_CALL));
  }
}
