import type { Cluster, Redis } from 'ioredis';
import {
  type Finding,
  FindingCounter,
  ifStray,
  isCluster,
  type Pace,
  patternOf,
  redisTime,
} from '@nest-session/redis-events/internal';
import { setTimeout as delay } from 'node:timers/promises';
import { batchesOf, pages, type ReadPage } from '@nest-session/redis/internal';
import { SPRING_GRACE, SpringScripts } from '../scripts/spring/spring.scripts.js';
import { isAlive, readSpringFields, readSpringSession } from '../read/spring-session.js';
import {
  MEMBERS_PER_CALL,
  membersOfSet,
  type SpringKey,
  type SpringKeys,
  unlessReplaced,
} from '../keys/spring-keys.js';
import { formOf, readStoredValue, type StoredForm } from '../values/stored-value.js';
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

export type KeyCounts = Record<SpringKey['kind'], number> & { indexOfPrincipals: number };

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MOST_NAMES = 10;
const FEW = 5;

export type SpringOverview = ReturnType<typeof springOverview>;

function springOverview(counts: KeyCounts, samples: readonly SampledSession[]) {
  const others = counts.shadow + counts.bucket + counts.expirations + counts.index;
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
    principals: counts.indexOfPrincipals,
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

/** A rule that Spring or its applications break. Without `mending`, only an application can mend it, or who runs it. */
interface RuleText {
  readonly problem: string;
  readonly mending?: string;
}

/** What is wrong with the data of Spring Session, and what mends it, as sentences without a subject for a list. */
const RULES = {
  'bucket-member-without-session': {
    problem: 'a bucket whose minute is over names a session that has ended',
    mending: 'removed from the bucket',
  },
  'bucket-stays': {
    problem: 'a bucket whose minute is over has no time to live, and Spring does not look at it again',
    mending: 'expires in five minutes',
  },
  'clock-differs': {
    problem: 'the clock of an application of Spring is more than two seconds from that of Redis: let NTP set both',
  },
  'expiration-without-session': {
    problem: 'the sorted set of expirations names a session that is gone',
    mending: 'removed from the sorted set',
  },
  'incomplete-session': {
    problem: 'a session hash lacks one of its times, so every request with its cookie fails until it has expired',
    mending: 'removed, with its shadow key',
  },
  'index-member-without-session': {
    problem: 'an index names a session that is gone, and index sets never expire',
    mending: 'removed from the index',
  },
  'mixed-serializers': {
    problem: 'some values are of JDK serialization and some are JSON, so some application fails at some sessions',
  },
  'unreadable-member': {
    problem: 'no serializer of Spring has written a member of an index or a bucket, so Spring fails at the whole set',
  },
} satisfies Record<string, RuleText>;

export type SpringRule = keyof typeof RULES;
export const SPRING_RULES: Readonly<Record<SpringRule, RuleText>> = RULES;

// Milliseconds. Spring works at a bucket when its minute is over, and at indexes after the session hash.
const MINUTE_IS_OVER = 120_000;
const SETTLED = 1000;
const CONFIRMED_PER_CALL = 100;
const MOST_SUSPECTS = 10_000;
const TIMES = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval'];
const OF_BUCKET = 'expires:';

/** Which session a member is for, and the key that is there as long as it means something. */
type ReadMember = (value: string) => { readonly what: string; readonly key: string } | undefined;

/** What looks wrong is looked at again, by a script, when Spring has had its time. */
class LeftoverSearch {
  readonly #found = new FindingCounter<SpringRule>();
  #looksAgain: (() => Promise<void>)[] = [];
  #suspects = 0;

  constructor(
    private readonly client: Redis,
    private readonly keys: SpringKeys,
    private readonly scripts: SpringScripts,
    private readonly pace: Pace,
  ) {}

  async sessions(ids: readonly string[]): Promise<void> {
    const found = await Promise.all(
      ids.map((id) => this.client.hmget(this.keys.session(id), ...TIMES).catch(ifStray([]))),
    );
    const incomplete = ids
      .filter((_, i) => found[i]!.some((time) => time === null))
      .map((id) => ({ what: id, session: this.keys.session(id), shadow: this.keys.shadow(id) }));
    await this.#suspect('incomplete-session', incomplete, (some) => this.scripts.incompleteSessions(some));
  }

  async bucket(key: string, minute: number, now: number): Promise<void> {
    const isOver = minute < now - MINUTE_IS_OVER;
    if (isOver && (await this.client.pttl(key)) === -1) {
      const bucket = { what: new Date(minute).toISOString(), key };
      await this.#suspect('bucket-stays', [bucket], (some) => this.scripts.lastingBuckets(some));
    }
    await this.#members(
      key,
      membersOfSet(this.client, key),
      this.#shadowOf,
      isOver ? 'bucket-member-without-session' : undefined,
    );
  }

  async index(key: string): Promise<void> {
    await this.#members(key, membersOfSet(this.client, key), this.#sessionOf, 'index-member-without-session');
  }

  async expirations(key: string): Promise<void> {
    const read: ReadPage<Buffer> = async (cursor) => {
      const [next, items] = await this.client.zscanBuffer(key, cursor, 'COUNT', MEMBERS_PER_CALL);
      return [next.toString(), items.filter((_, i) => i % 2 === 0)];
    };
    await this.#members(key, unlessReplaced(pages(read)), this.#sessionOf, 'expiration-without-session');
  }

  /** What was there, twice. */
  async end(): Promise<Finding<SpringRule>[]> {
    await this.#lookAgain();
    return this.#found.all;
  }

  readonly #sessionOf: ReadMember = (id) => ({ what: id, key: this.keys.session(id) });

  readonly #shadowOf: ReadMember = (value) => {
    const id = value.startsWith(OF_BUCKET) ? value.slice(OF_BUCKET.length) : '';
    return id === '' ? undefined : { what: id, key: this.keys.shadow(id) };
  };

  /** `rule`: which one a member breaks whose key is gone. */
  async #members(
    place: string,
    stored: AsyncIterable<Buffer[]>,
    read: ReadMember,
    rule: SpringRule | undefined,
  ): Promise<void> {
    for await (const page of stored) {
      await this.pace.pass(page.length);
      const named = page.flatMap((member) => this.#named(member, read));
      if (rule === undefined) continue;
      const exist = await Promise.all(named.map(({ key }) => this.client.exists(key)));
      const lost = named.filter((_, i) => exist[i] === 0);
      await this.#suspect(rule, lost, (some) => this.scripts.lostMembers(place, some));
    }
  }

  #named(stored: Buffer, read: ReadMember) {
    const value = readStoredValue(stored);
    const named = typeof value === 'string' ? read(value) : undefined;
    if (named) return [{ stored, ...named }];
    this.#found.add([{ what: `a member of ${stored.length} bytes`, rule: 'unreadable-member' }]);
    return [];
  }

  async #suspect<T extends { readonly what: string }>(
    rule: SpringRule,
    all: readonly T[],
    confirmed: (some: readonly T[]) => Promise<readonly T[]>,
  ): Promise<void> {
    for (const some of batchesOf(all, CONFIRMED_PER_CALL)) {
      this.#looksAgain.push(async () => {
        for (const { what } of await confirmed(some)) this.#found.add([{ what, rule }]);
      });
    }
    this.#suspects += all.length;
    if (this.#suspects > MOST_SUSPECTS) await this.#lookAgain();
  }

  async #lookAgain(): Promise<void> {
    const looks = this.#looksAgain;
    if (looks.length === 0) return;
    [this.#looksAgain, this.#suspects] = [[], 0];
    await delay(SETTLED, undefined, this.pace.signal ? { signal: this.pace.signal } : {});
    for (const look of looks) await look();
  }
}

interface SpringLookOptions {
  /** Mends what it finds. */
  readonly mends: boolean;
  /** How many sessions are looked at more closely. */
  readonly sample: number;
  readonly pace: Pace;
  readonly onProgress: (looked: number) => void;
}

export type SpringLook = Awaited<ReturnType<typeof lookAtSpring>>;

const SCANNED_PER_CALL = 500;
const LARGEST_DIFFERENCE = 2000;

/** Beside the applications that use the namespace. It changes nothing unless it mends. */
export async function lookAtSpring(client: Redis, keys: SpringKeys, options: SpringLookOptions) {
  const { mends, sample, pace, onProgress } = options;
  // On a Cluster, a script cannot see a set and what it names.
  const search = isCluster(client)
    ? undefined
    : new LeftoverSearch(client, keys, new SpringScripts(client, mends), pace);
  const counts: KeyCounts = { session: 0, shadow: 0, bucket: 0, expirations: 0, index: 0, indexOfPrincipals: 0 };
  const samples: SampledSession[] = [];
  for await (const page of scanned(client, keys)) {
    await pace.pass(page.length);
    onProgress(pace.passed);
    const ids: string[] = [];
    const now = await redisTime(client);
    for (const key of page) {
      const known = keys.read(key);
      if (!known) continue;
      counts[known.kind]++;
      if (known.kind === 'session') ids.push(known.id);
      else if (known.kind === 'bucket') await search?.bucket(key, known.minute, now);
      else if (known.kind === 'expirations') await search?.expirations(key);
      else if (known.kind === 'index') {
        if (known.isOfPrincipals) counts.indexOfPrincipals++;
        await search?.index(key);
      }
    }
    await search?.sessions(ids);
    const some = ids.slice(0, sample - samples.length);
    const sampled = await Promise.all(some.map((id) => sampleSession(client, keys, id)));
    samples.push(...sampled.filter((each) => each !== undefined));
  }
  const overview = springOverview(counts, samples);
  const found = (await search?.end()) ?? [];
  const findings = [...found, ...findingsIn(overview)].toSorted((a, b) => (a.rule < b.rule ? -1 : 1));
  return { overview, findings, hasLookedForLeftovers: search !== undefined };
}

async function* scanned(client: Redis | Cluster, { prefix }: SpringKeys): AsyncIterable<string[]> {
  const nodes = isCluster(client) ? client.nodes('master') : [client];
  for (const node of nodes) {
    yield* pages((cursor) => node.scan(cursor, 'MATCH', `${patternOf(prefix)}*`, 'COUNT', SCANNED_PER_CALL));
  }
}

function findingsIn({ clockAhead = 0, serializer }: SpringOverview): Finding<SpringRule>[] {
  const found = new FindingCounter<SpringRule>();
  const seconds = (Math.abs(clockAhead) / 1000).toFixed(1);
  if (Math.abs(clockAhead) > LARGEST_DIFFERENCE) {
    found.add([{ what: `${seconds} s ${clockAhead > 0 ? 'ahead' : 'behind'}`, rule: 'clock-differs' }]);
  }
  if (serializer === 'mixed') found.add([{ what: 'the sessions that were looked at', rule: 'mixed-serializers' }]);
  return found.all;
}
