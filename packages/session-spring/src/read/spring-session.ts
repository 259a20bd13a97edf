import type { Redis } from 'ioredis';
import { ifStray } from '@nest-session/redis-events/internal';
import type { JsonValue } from '../values/json-values.js';
import { isNoContext } from '../values/spring-principal.js';
import { readStoredValue } from '../values/stored-value.js';

/** The fields of a session hash, as they are stored; none of a key of another type. */
export async function readSpringFields(client: Redis, key: string): Promise<[name: string, stored: Buffer][]> {
  const reply = (await client.callBuffer('HGETALL', key).catch(ifStray([]))) as Buffer[];
  return Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i]!.toString(), reply[2 * i + 1]!]);
}

export interface SpringSession {
  /** Epoch milliseconds. */
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  /** Seconds; a negative one never ends. */
  readonly maxInactiveInterval: number;
  /** Undefined is a value that cannot be read, or the context of Spring Security where it is none. */
  readonly attributes: ReadonlyMap<string, JsonValue | undefined>;
}

const ATTRIBUTE = 'sessionAttr:';

/**
 * The session in a session hash of Spring, whichever serializer wrote it. Undefined if the hash is not a whole one: a
 * request of Spring that ends after its session writes some fields of it again.
 */
export function readSpringSession(
  fields: Iterable<readonly [name: string, stored: Buffer]>,
): SpringSession | undefined {
  const times: Record<string, number | undefined> = {};
  const attributes = new Map<string, JsonValue | undefined>();
  for (const [name, stored] of fields) {
    // Spring removes an attribute by emptying its field.
    if (stored.length === 0) continue;
    const value = readStoredValue(stored);
    if (!name.startsWith(ATTRIBUTE)) {
      if (Number.isSafeInteger(value)) times[name] = value as number;
    } else if (value !== null) {
      const attribute = name.slice(ATTRIBUTE.length);
      attributes.set(attribute, isNoContext(attribute, stored) ? undefined : value);
    }
  }
  const { creationTime, lastAccessedTime, maxInactiveInterval } = times;
  if (creationTime === undefined || lastAccessedTime === undefined || maxInactiveInterval === undefined)
    return undefined;
  return { creationTime, lastAccessedTime, maxInactiveInterval, attributes };
}

/** Whether Spring would load it. Spring looks at nothing else, such as the shadow key. */
export function isAlive({ lastAccessedTime, maxInactiveInterval }: SpringSession, now: number): boolean {
  return maxInactiveInterval < 0 || lastAccessedTime + maxInactiveInterval * 1000 > now;
}
