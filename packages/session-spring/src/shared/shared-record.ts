import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { SessionRecord } from '@nest-session/core/store';
import { ATTRIBUTE_FIELD } from '@nest-session/redis/internal';
import { addPrincipal, nameHere } from '../values/principal-attribute.js';
import { isAlive, readSpringSession } from '../read/spring-session.js';

type Fields = readonly (readonly [name: string, stored: Buffer])[];

/** What a change needs to know of the session that was loaded. */
export interface SharedMemo {
  /** The name of a user who is signed in by Spring Security alone. */
  readonly springName: string | undefined;
}

/**
 * The live session in a session hash of Spring, with the texts of its attributes; undefined when there is none.
 * @param signedIn when and who, as the key beside has it
 */
export function toSharedRecord(
  id: string,
  fields: Fields,
  signedIn: string | null,
  now: number,
): SessionRecord | undefined {
  const isTime = ([name]: Fields[number]) => !name.startsWith(ATTRIBUTE_FIELD);
  const session = readSpringSession(fields.filter(isTime));
  if (!session || session.maxInactiveInterval === 0 || !isAlive(session, now)) return undefined;
  const { creationTime, lastAccessedTime, maxInactiveInterval } = session;
  const attributes = new Map<string, string>();
  for (const [name, stored] of fields) {
    // Spring removes an attribute by emptying its field.
    if (!name.startsWith(ATTRIBUTE_FIELD) || stored.length === 0) continue;
    const here = nameHere(name.slice(ATTRIBUTE_FIELD.length));
    if (here !== undefined) attributes.set(here, stored.toString());
  }
  const springName = addPrincipal(attributes);
  return {
    id,
    creationTime,
    lastAccessedTime,
    maxInactiveInterval,
    absoluteTimeout: -1,
    authenticatedAt: signInOf(attributes, signedIn),
    attributes,
    timeToLive: maxInactiveInterval < 0 ? undefined : lastAccessedTime + maxInactiveInterval * 1000 - now,
    memo: { springName } satisfies SharedMemo,
  };
}

/** It counts for who signed in then. Spring may have signed in somebody else since. */
function signInOf(attributes: ReadonlyMap<string, string>, beside: string | null): number | undefined {
  const [, at, name] = /^(\d+) (.*)$/s.exec(beside ?? '') ?? [];
  const signedIn = name === '' ? undefined : JSON.stringify(name);
  return at !== undefined && signedIn === attributes.get(PRINCIPAL_ATTRIBUTE) ? Number(at) : undefined;
}
