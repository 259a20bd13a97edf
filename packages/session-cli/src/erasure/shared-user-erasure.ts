import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ifStray, redisTime } from '@nest-session/redis-events/internal';
import { batchesOf, type SessionPartitions } from '@nest-session/redis/internal';
import {
  dataHere,
  EXPIRED_FIELD,
  namespaceOfSpring,
  readSpringFields,
  readStoredValue,
  SharedKeys,
  SharedScripts,
  SpringScripts,
  storedIds,
  toSharedRecord,
} from '@nest-session/spring/internal';
import { scannedKeys } from '../repartitioning/scanned-keys.js';
import type { SessionToErase } from '../scripts/erasure/erasure.scripts.js';
import { type EraseOptions, UserErasure, type Whose } from './user-erasure.js';

const AT_ONCE = 50;
const CONTEXT_FIELD = 'sessionAttr:SPRING_SECURITY_CONTEXT';
// Milliseconds in which Spring hears of an end, and reads the data of the session.
const UNTIL_SPRING_HEARS = 1000;

/** The same where sessions are shared with Spring, which hears of each end before the data is gone. */
export class SharedUserErasure extends UserErasure {
  readonly #keys: SharedKeys;
  readonly #shared: SharedScripts;
  /** The sessions that Spring lists as theirs. */
  #ofSpring: ReadonlySet<string> = new Set();

  /** `partitions`: of the namespace beside that of Spring. */
  constructor(client: Redis, partitions: SessionPartitions, name: string, options: EraseOptions) {
    super(client, partitions, name, options);
    const ofSpring = namespaceOfSpring(partitions.namespace);
    this.#keys = new SharedKeys(ofSpring, partitions.all[0]!, client.options.db ?? 0);
    this.#shared = new SharedScripts(client, this.#keys);
  }

  protected override async *eraseSessions(): AsyncIterable<SessionToErase> {
    const { isRehearsal, signal } = this.options;
    const ended = new Set<string>();
    this.#ofSpring = new Set((await this.#listed()).map(({ id }) => id));
    for await (const page of storedIds(this.client, this.#keys.spring)) yield* this.#endThose(page, ended);
    if (isRehearsal) return;
    // The scan may miss a session that is rotated meanwhile, but the index lists it by the id that it has then.
    for (let known = -1; known < ended.size;) {
      known = ended.size;
      this.#ofSpring = new Set((await this.#listed()).map(({ id }) => id));
      yield* this.#endThose(
        [...this.#ofSpring].filter((id) => !ended.has(id)),
        ended,
      );
    }
    if (ended.size > 0) await pause(UNTIL_SPRING_HEARS, undefined, { signal });
    for (const id of ended) await this.client.unlink(this.#keys.spring.session(id), this.#keys.signedIn(id));
    await this.#removeNotes();
    await this.#removeFromIndex();
  }

  async *#endThose(ids: readonly string[], ended: Set<string>): AsyncIterable<SessionToErase> {
    for (const some of batchesOf(ids, AT_ONCE)) {
      for (const found of await this.#find(some)) {
        const { id, was } = found;
        const ends = was === 'live' && !this.options.isRehearsal;
        const isGone = ends && (await this.#shared.erase(id, this.name)).outcome === 'gone';
        // It has ended since then, or somebody else has signed in to it.
        if (isGone && (await this.#find([id])).length === 0) continue;
        ended.add(id);
        yield found;
      }
      this.look(some.length);
    }
  }

  async #find(ids: readonly string[]): Promise<SessionToErase[]> {
    const now = await redisTime(this.client);
    const all = await Promise.all(ids.map((id) => readSpringFields(this.client, this.#keys.spring.session(id))));
    return ids.flatMap((id, i): SessionToErase[] => {
      const stored = all[i]!.filter(([, value]) => value.length > 0);
      const whose = this.whose(Object.fromEntries(stored.map(([name, value]) => [name, String(value)])));
      // A class of the application may hide the name from all but Spring.
      const isListed = whose === 'unknown' && this.#ofSpring.has(id) && stored.some(([name]) => name === CONTEXT_FIELD);
      if (whose !== 'theirs' && !isListed) return [];
      // One that Spring Security has expired is ended as if it were live.
      const fields = all[i]!.filter(([name]) => name !== EXPIRED_FIELD);
      return [{ id, was: toSharedRecord(id, fields, null, now) ? 'live' : 'ended' }];
    });
  }

  /** Of who signed in. The session may be gone without us, or Spring may have signed in somebody else since. */
  async #removeNotes(): Promise<void> {
    for await (const keys of scannedKeys(this.client, this.partitions, 'sessions:signed-in:*')) {
      for (const { key } of keys) {
        const text = await this.client.get(key).catch(ifStray(null));
        if (text?.slice(text.indexOf(' ') + 1) === this.name) await this.client.unlink(key);
      }
    }
  }

  /** What it has left names nobody, but the key of the index has the name of the user. */
  async #removeFromIndex(): Promise<void> {
    const { spring } = this.#keys;
    const scripts = new SpringScripts(this.client);
    for (const members of batchesOf(await this.#listed(), AT_ONCE)) {
      const named = members.map(({ stored, id }) => ({ stored, session: spring.session(id) }));
      await scripts.removeLost(spring.index(this.name), named);
    }
  }

  async #listed(): Promise<{ readonly stored: Buffer; readonly id: string }[]> {
    const members = await this.client.smembersBuffer(this.#keys.spring.index(this.name));
    return members.flatMap((stored) => {
      const id = readStoredValue(stored);
      return typeof id === 'string' ? [{ stored, id }] : [];
    });
  }

  protected override whose(fields: Readonly<Record<string, unknown>>): Whose {
    const texts = Object.entries(fields).filter((field): field is [string, string] => typeof field[1] === 'string');
    return super.whose(dataHere(Object.fromEntries(texts)));
  }
}
