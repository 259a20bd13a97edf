import type { Redis } from 'ioredis';
import { ifStray } from '@nest-session/redis-events/internal';
import type { JsonValue } from '../values/json-values.js';
import { NO_OWN_CLASSES, type OwnClasses } from '../values/own-classes.js';
import { readSecurityContext, type SpringAuthentication } from '../values/security-context.js';
import { SECURITY_CONTEXT } from '../values/spring-principal.js';
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
  /** Who is signed in by Spring Security. */
  readonly user: SpringAuthentication | undefined;
  /** Whether `SessionInformation.expireNow()` has ended it, which leaves it in Redis. */
  readonly isExpired: boolean;
}

const ATTRIBUTE = 'sessionAttr:';
const EXPIRED = 'org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED';
/** The field by which Spring Security marks a session as expired. */
export const EXPIRED_FIELD: string = ATTRIBUTE + EXPIRED;

/**
 * The session in a session hash of Spring, whichever serializer wrote it. Undefined if the hash is not a whole one: a
 * request of Spring that ends after its session writes some fields of it again.
 */
export function readSpringSession(
  fields: Iterable<readonly [name: string, stored: Buffer]>,
  own: OwnClasses = NO_OWN_CLASSES,
): SpringSession | undefined {
  const times: Record<string, number | undefined> = {};
  let user: SpringAuthentication | undefined;
  const attributes = new Map<string, JsonValue | undefined>();
  for (const [name, stored] of fields) {
    // Spring removes an attribute by emptying its field.
    if (stored.length === 0) continue;
    if (name === ATTRIBUTE + SECURITY_CONTEXT) {
      const context = readSecurityContext(stored, own);
      user = context?.user;
      attributes.set(SECURITY_CONTEXT, context?.value);
      continue;
    }
    const value = readStoredValue(stored);
    if (!name.startsWith(ATTRIBUTE)) {
      if (Number.isSafeInteger(value)) times[name] = value as number;
    } else if (value !== null) {
      attributes.set(name.slice(ATTRIBUTE.length), value);
    }
  }
  const { creationTime, lastAccessedTime, maxInactiveInterval } = times;
  if (creationTime === undefined || lastAccessedTime === undefined || maxInactiveInterval === undefined)
    return undefined;
  const isExpired = attributes.get(EXPIRED) === true;
  return { creationTime, lastAccessedTime, maxInactiveInterval, attributes, user, isExpired };
}

/** Whether a request of Spring would go on with it. Spring looks at nothing else, such as the shadow key. */
export function isAlive(session: SpringSession, now: number): boolean {
  const { lastAccessedTime, maxInactiveInterval, isExpired } = session;
  if (isExpired) return false;
  return maxInactiveInterval < 0 || lastAccessedTime + maxInactiveInterval * 1000 > now;
}
