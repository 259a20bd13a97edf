import type { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { VISIT_ATTRIBUTES } from './visit.routes.js';
import { hashOfValue } from './hash-of-value.js';

/** The visited sessions of a namespace in Redis. */
export class VisitedSessions {
  readonly #keys: SessionKeys;

  constructor(
    private readonly client: Redis,
    namespace: string,
  ) {
    this.#keys = new SessionKeys(namespace);
  }

  /** The marks that no session has. */
  async missing(marks: readonly string[]): Promise<string[]> {
    const found = await Promise.all(marks.map((mark) => this.client.exists(this.#index(mark))));
    return marks.filter((_, i) => found[i] === 0);
  }

  /**
   * Expects every session to be complete: its session hash with the attributes of a visit, its shadow key, its bucket
   * member and its index member; and expects no key without a session.
   */
  async areWhole(): Promise<void> {
    const names = await this.client.keys(`${this.#keys.prefix}*`);
    const after = (prefix: string) =>
      names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
    const ids = after(this.#keys.session(''))
      .filter((id) => !id.includes(':'))
      .sort();
    const shadows = after(this.#keys.shadow(''));
    const buckets = await Promise.all(
      after(this.#keys.bucket('')).map((minute) => this.#members(this.#keys.bucket(minute))),
    );
    const prefix = this.#keys.index('visitor', '');
    const indexes = await Promise.all(after(prefix).map((hash) => this.#listed(prefix + hash, hash)));
    const hashes = new Map(indexes.flat());
    const fields = VISIT_ATTRIBUTES.map((name) => `sessionAttr:${name}`);
    const values = await Promise.all(ids.map((id) => this.client.hmget(this.#keys.session(id), ...fields)));

    expect(shadows.sort()).toEqual(ids);
    expect(
      buckets
        .flat()
        .map(([member]) => member)
        .sort(),
    ).toEqual(ids.map((id) => `expires:${id}`));
    expect(
      indexes
        .flat()
        .map(([id]) => id)
        .sort(),
    ).toEqual(ids);
    const hashed = values.map((texts) => texts.map((text) => hashOfValue(JSON.parse(text!) as string)));
    expect(hashed).toEqual(ids.map((id) => fields.map(() => hashes.get(id))));
  }

  #index(mark: string): string {
    return this.#keys.index('visitor', hashOfValue(mark));
  }

  async #members(key: string): Promise<[member: string, key: string][]> {
    return (await this.client.smembers(key)).map((member) => [member, key]);
  }

  async #listed(key: string, hash: string): Promise<[id: string, hash: string][]> {
    return (await this.client.zrange(key, '0', '-1')).map((id) => [id, hash]);
  }
}
