import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';

const PRINCIPAL = 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';
const GRACE = 300_000;

/** Sends the commands of `RedisIndexedSessionRepository`, with plain JSON, in its order and one by one. */
export class SpringWriter {
  constructor(
    private readonly client: Redis,
    private readonly namespace = 'spring:session',
  ) {}

  /** Returns the id of a new session. `tells`: whether anybody hears of it. */
  async create(
    attributes: Readonly<Record<string, unknown>> = {},
    interval = 1800,
    { tells = true }: { readonly tells?: boolean } = {},
  ): Promise<string> {
    const id = randomUUID();
    const now = await this.now();
    const fields = { creationTime: now, lastAccessedTime: now, maxInactiveInterval: interval };
    const named = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`sessionAttr:${name}`, value]));
    const all = Object.entries({ ...fields, ...named });
    await this.client.hmset(this.session(id), ...all.flatMap(([name, value]) => [name, JSON.stringify(value)]));
    const principal = attributes[PRINCIPAL];
    if (typeof principal === 'string') await this.client.sadd(this.index(principal), JSON.stringify(id));
    const message = JSON.stringify({ ...fields, ...named });
    if (tells) await this.client.publish(`${this.namespace}:event:0:created:${id}`, message);
    await this.#renew(id, now, interval);
    return id;
  }

  /** As a request that writes one attribute. */
  async set(id: string, name: string, value: unknown): Promise<void> {
    const now = await this.now();
    const interval = Number(await this.client.hget(this.session(id), 'maxInactiveInterval'));
    await this.client.hmset(this.session(id), 'lastAccessedTime', now, `sessionAttr:${name}`, JSON.stringify(value));
    await this.#renew(id, now, interval);
  }

  /** Returns the new id. */
  async changeId(id: string): Promise<string> {
    const newId = randomUUID();
    await this.client.rename(this.session(id), this.session(newId));
    await this.client.rename(this.shadow(id), this.shadow(newId));
    return newId;
  }

  async invalidate(id: string): Promise<void> {
    const bucket = await this.#bucket(id);
    await this.client.srem(bucket, `"expires:${id}"`);
    await this.client.del(this.shadow(id));
    await this.client.hmset(this.session(id), 'maxInactiveInterval', 0);
    await this.client.del(this.shadow(id));
    await this.client.pexpire(this.session(id), GRACE);
  }

  session(id: string): string {
    return `${this.namespace}:sessions:${id}`;
  }

  shadow(id: string): string {
    return `${this.namespace}:sessions:expires:${id}`;
  }

  index(principal: string): string {
    return `${this.namespace}:index:${PRINCIPAL}:${principal}`;
  }

  async now(): Promise<number> {
    const [seconds, micros] = await this.client.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  async #renew(id: string, now: number, interval: number): Promise<void> {
    await this.client.append(this.shadow(id), '');
    await this.client.pexpire(this.shadow(id), interval * 1000);
    await this.client.pexpire(this.session(id), interval * 1000 + GRACE);
    const bucket = this.#bucketAt(now + interval * 1000);
    await this.client.pexpire(bucket, interval * 1000 + GRACE);
    await this.client.sadd(bucket, `"expires:${id}"`);
  }

  async #bucket(id: string): Promise<string> {
    const [accessed, interval] = await this.client.hmget(this.session(id), 'lastAccessedTime', 'maxInactiveInterval');
    return this.#bucketAt(Number(accessed) + Number(interval) * 1000);
  }

  #bucketAt(end: number): string {
    return `${this.namespace}:expirations:${Math.floor((end + 60_000) / 60_000) * 60_000}`;
  }
}
