import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';

const NAMESPACE = 'spring:session:';
const INTERVAL = 1_800_000;
const GRACE = 300_000;
const MINUTE = 60_000;

export interface SpringSession {
  id: string;
  readonly attributes: Record<string, unknown>;
  /** What the next save writes. */
  readonly changes: Record<string, string>;
  readonly isNew: boolean;
  readonly originalId: string;
  readonly originalLastAccessedTime: number;
  lastAccessedTime: number;
}

/**
 * The commands of Spring Session 4.1's `RedisIndexedSessionRepository`, in its order and, as there, each one a round
 * trip. It has no index of principals, because these sessions have no principal. JSON takes the place of Java's
 * serialization.
 */
export class SpringSessions {
  constructor(private readonly redis: Redis) {}

  create(): SpringSession {
    const now = Date.now();
    const id = randomUUID();
    const changes = { creationTime: `${now}`, maxInactiveInterval: '1800', lastAccessedTime: `${now}` };
    const times = { originalLastAccessedTime: now, lastAccessedTime: now };
    return { id, originalId: id, attributes: {}, changes, isNew: true, ...times };
  }

  /** Every attribute is decoded, and the session is marked as accessed, so that every request has something to save. */
  async load(id: string): Promise<SpringSession | undefined> {
    const hash = await this.redis.hgetall(`${NAMESPACE}sessions:${id}`);
    if (hash['creationTime'] === undefined) return undefined;
    const attributes: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(hash)) {
      if (name.startsWith('sessionAttr:')) attributes[name.slice('sessionAttr:'.length)] = JSON.parse(text);
    }
    const originalLastAccessedTime = Number(hash['lastAccessedTime']);
    const lastAccessedTime = Date.now();
    const changes = { lastAccessedTime: `${lastAccessedTime}` };
    return { id, originalId: id, attributes, changes, isNew: false, originalLastAccessedTime, lastAccessedTime };
  }

  setAttribute(session: SpringSession, name: string, value: unknown): void {
    session.attributes[name] = value;
    session.changes[`sessionAttr:${name}`] = JSON.stringify(value);
  }

  changeSessionId(session: SpringSession): void {
    session.id = randomUUID();
  }

  async save(session: SpringSession): Promise<void> {
    const { id, originalId } = session;
    if (id !== originalId) await this.#rename(originalId, id);
    const key = `${NAMESPACE}sessions:${id}`;
    const shadow = `${NAMESPACE}sessions:expires:${id}`;
    await this.redis.hmset(key, session.changes);
    if (session.isNew) {
      await this.redis.publish(`${NAMESPACE}event:0:created:${id}`, JSON.stringify(session.changes));
    }
    await this.redis.append(shadow, '');
    await this.redis.pexpire(shadow, INTERVAL);
    await this.redis.pexpire(key, INTERVAL + GRACE);
    const original = bucketOf(session.originalLastAccessedTime);
    const bucket = bucketOf(session.lastAccessedTime);
    if (original !== bucket) await this.redis.srem(original, `expires:${id}`);
    await this.redis.pexpire(bucket, INTERVAL + GRACE);
    await this.redis.sadd(bucket, `expires:${id}`);
  }

  async #rename(from: string, to: string): Promise<void> {
    await this.redis.rename(`${NAMESPACE}sessions:${from}`, `${NAMESPACE}sessions:${to}`);
    await this.redis.rename(`${NAMESPACE}sessions:expires:${from}`, `${NAMESPACE}sessions:expires:${to}`);
    // It looks for the bucket of a session that it has just renamed, and finds none.
    await this.redis.hgetall(`${NAMESPACE}sessions:${from}`);
  }
}

function bucketOf(lastAccessedTime: number): string {
  const end = lastAccessedTime + INTERVAL;
  return `${NAMESPACE}expirations:${Math.floor((end + MINUTE) / MINUTE) * MINUTE}`;
}
