import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type Finding, FindingCounter, isReply, type Pace } from '@nest-session/redis-events/internal';
import { pages, type ReadPage } from '@nest-session/redis/internal';
import type { NamedKey, SessionKeyPair, SpringScripts } from '../scripts/spring/spring.scripts.js';
import type { SpringRule } from './spring-rules.js';
import type { SpringKeys } from '../keys/spring-keys.js';
import { readStoredValue } from '../values/stored-value.js';

// Milliseconds. Spring works at a bucket when its minute is over, and at indexes after the session hash.
const MINUTE_IS_OVER = 120_000;
const SETTLED = 1000;
const MEMBERS_PER_CALL = 500;
const CONFIRMED_PER_CALL = 100;
const MOST_SUSPECTS = 10_000;
const TIMES = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval'];
const OF_BUCKET = 'expires:';

/** A member, and the session that it is for. */
interface Member extends NamedKey {
  readonly id: string;
}

/** Members of one set whose keys were gone, and the rule that they break. */
interface Suspects {
  readonly rule: SpringRule;
  readonly members: Member[];
}

/** Which session a member is for, and the key that is there as long as it means something. */
type ReadMember = (value: string) => { readonly id: string; readonly key: string } | undefined;

/**
 * Looks for what Spring leaves behind. What looks like it is looked at again, by a script, when Spring has had its
 * time.
 */
export class LeftoverSearch {
  readonly #found = new FindingCounter<SpringRule>();
  /** By the set. */
  #members = new Map<string, Suspects>();
  #count = 0;
  #buckets: { readonly key: string; readonly minute: number }[] = [];
  #sessions: (SessionKeyPair & { readonly id: string })[] = [];

  constructor(
    private readonly client: Redis,
    private readonly keys: SpringKeys,
    private readonly scripts: SpringScripts,
    private readonly pace: Pace,
  ) {}

  /** Looks at session hashes. */
  async sessions(ids: readonly string[]): Promise<void> {
    const found = await Promise.all(
      ids.map((id) => this.client.hmget(this.keys.session(id), ...TIMES).catch(ifReplaced)),
    );
    const incomplete = ids.filter((_, i) => found[i]?.includes(null));
    this.#sessions.push(
      ...incomplete.map((id) => ({ id, session: this.keys.session(id), shadow: this.keys.shadow(id) })),
    );
    await this.#confirmIfMany(incomplete.length);
  }

  /** Looks at a bucket. `now`: by the clock of Redis. */
  async bucket(key: string, minute: number, now: number): Promise<void> {
    const isOver = minute < now - MINUTE_IS_OVER;
    if (isOver && (await this.client.pttl(key)) === -1) this.#buckets.push({ key, minute });
    const members = pages(this.#pageOfSet(key));
    await this.#lookAt(key, members, this.#shadowOf, isOver ? 'bucket-member-without-session' : undefined);
  }

  /** Looks at an index. */
  async index(key: string): Promise<void> {
    await this.#lookAt(key, pages(this.#pageOfSet(key)), this.#sessionOf, 'index-member-without-session');
  }

  /** Looks at the sorted set of expirations. */
  async expirations(key: string): Promise<void> {
    const read: ReadPage<Buffer> = async (cursor) => {
      const [next, items] = await this.client.zscanBuffer(key, cursor, 'COUNT', MEMBERS_PER_CALL);
      return [next.toString(), items.filter((_, i) => i % 2 === 0)];
    };
    await this.#lookAt(key, pages(read), this.#sessionOf, 'expiration-without-session');
  }

  /** What was there, twice. */
  async end(): Promise<Finding<SpringRule>[]> {
    await this.#confirm();
    return this.#found.all;
  }

  readonly #sessionOf: ReadMember = (id) => ({ id, key: this.keys.session(id) });

  readonly #shadowOf: ReadMember = (value) => {
    const id = value.startsWith(OF_BUCKET) ? value.slice(OF_BUCKET.length) : '';
    return id === '' ? undefined : { id, key: this.keys.shadow(id) };
  };

  #pageOfSet(key: string): ReadPage<Buffer> {
    return async (cursor) => {
      const [next, members] = await this.client.sscanBuffer(key, cursor, 'COUNT', MEMBERS_PER_CALL);
      return [next.toString(), members];
    };
  }

  /** `rule`: which one a member breaks whose key is gone. */
  async #lookAt(place: string, members: AsyncIterable<Buffer[]>, read: ReadMember, rule: SpringRule | undefined) {
    try {
      for await (const page of members) {
        await this.pace.pass(page.length);
        const named = page.flatMap((stored) => this.#named(stored, read));
        if (rule !== undefined) await this.#suspectLost(place, named, rule);
      }
    } catch (error) {
      ifReplaced(error);
    }
  }

  #named(stored: Buffer, read: ReadMember): Member[] {
    const value = readStoredValue(stored);
    const named = typeof value === 'string' ? read(value) : undefined;
    if (named) return [{ stored, ...named }];
    this.#found.add([{ what: `a member of ${stored.length} bytes`, rule: 'unreadable-member' }]);
    return [];
  }

  async #suspectLost(place: string, named: readonly Member[], rule: SpringRule): Promise<void> {
    const exist = await Promise.all(named.map(({ key }) => this.client.exists(key)));
    const lost = named.filter((_, i) => exist[i] === 0);
    if (lost.length === 0) return;
    const suspects = this.#members.get(place) ?? { rule, members: [] };
    this.#members.set(place, suspects);
    suspects.members.push(...lost);
    await this.#confirmIfMany(lost.length);
  }

  async #confirmIfMany(more: number): Promise<void> {
    this.#count += more;
    if (this.#count > MOST_SUSPECTS) await this.#confirm();
  }

  async #confirm(): Promise<void> {
    const [members, buckets, sessions] = [this.#members, this.#buckets, this.#sessions];
    if (members.size + buckets.length + sessions.length === 0) return;
    [this.#members, this.#buckets, this.#sessions, this.#count] = [new Map(), [], [], 0];
    await delay(SETTLED, undefined, this.pace.signal ? { signal: this.pace.signal } : {});
    for (const some of parts(buckets)) {
      const lasting = await this.scripts.lastingBuckets(some);
      this.#found.add(lasting.map(({ minute }) => ({ what: new Date(minute).toISOString(), rule: 'bucket-stays' })));
    }
    for (const [place, { rule, members: all }] of members) {
      for (const some of parts(all)) {
        const lost = await this.scripts.lostMembers(place, some);
        this.#found.add(lost.map(({ id }) => ({ what: id, rule })));
      }
    }
    for (const some of parts(sessions)) {
      const incomplete = await this.scripts.incompleteSessions(some);
      this.#found.add(incomplete.map(({ id }) => ({ what: id, rule: 'incomplete-session' })));
    }
  }
}

function* parts<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let i = 0; i < all.length; i += CONFIRMED_PER_CALL) yield all.slice(i, i + CONFIRMED_PER_CALL);
}

/** Somebody has put another key in the place of one since it was found. */
function ifReplaced(error: unknown): undefined {
  if (!isReply(error, 'WRONGTYPE')) throw error;
}
