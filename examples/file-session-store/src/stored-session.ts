import { isKept, type KeptAttributes } from '@nest-session/core/store';

/** An id that a rotation replaced. */
export interface FormerId {
  readonly id: string;
  readonly newId: string;
  readonly changedAt: number;
  /** Whether late changes reach the session. Not after it was cleared, or when it has had another principal since. */
  readonly leadsOn: boolean;
  /** Whether the rotation has signed a user out. */
  readonly isLeft: boolean;
  /** What the sign-in that replaced it has kept; none: it was another rotation. */
  readonly kept?: KeptAttributes | undefined;
}

/** The content of the file of a session. Pairs, not objects: an attribute may have any name, also `__proto__`. */
export interface StoredSession {
  readonly id: string;
  /** Oldest first. */
  readonly formerIds: readonly FormerId[];
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  readonly authenticatedAt?: number | undefined;
  readonly maxInactiveInterval: number;
  readonly absoluteTimeout: number;
  /** Epoch milliseconds. 0: the session was deleted and only its former ids are kept. Infinity, null in JSON: never. */
  readonly end: number;
  readonly attributes: Pairs;
  readonly indexes: Pairs;
  readonly device?: string | undefined;
}

/** How long a former id leads to the session, and is taken, in milliseconds. */
export const FORWARDING_TIME = 60_000;

type Pairs = readonly (readonly [name: string, text: string])[];

/** The time at which a session expires. Its last access may be in the future, if the clock was set back. */
export function endOf(session: Omit<StoredSession, 'end'>, now: number): number {
  const { lastAccessedTime, maxInactiveInterval, absoluteTimeout } = session;
  const idleEnd = maxInactiveInterval < 0 ? Infinity : Math.min(lastAccessedTime, now) + maxInactiveInterval * 1000;
  return Math.min(idleEnd, absoluteTimeout < 0 ? Infinity : startOf(session) + absoluteTimeout * 1000);
}

/** When the absolute timeout began. */
function startOf({ creationTime, authenticatedAt = 0 }: Omit<StoredSession, 'end'>): number {
  return Math.max(creationTime, authenticatedAt);
}

/** The absolute timeout that gives a session whose start has changed the end that it had. */
export function sameEnd(session: StoredSession, changed: StoredSession): number {
  const { absoluteTimeout } = session;
  if (absoluteTimeout < 0) return absoluteTimeout;
  return Math.round(absoluteTimeout + (startOf(session) - startOf(changed)) / 1000);
}

/** The time from which the file is no longer needed. */
export function neededUntil({ end, formerIds }: StoredSession): number {
  return Math.max(end, ...formerIds.map(({ changedAt }) => changedAt + FORWARDING_TIME));
}

/** The pairs that a sign-in keeps. */
export function keptOf<T>(pairs: Iterable<readonly [string, T]>, kept: KeptAttributes | undefined): [string, T][] {
  return [...pairs].filter(([name]) => !kept || isKept(name, kept)).map(([name, value]) => [name, value]);
}

/** The pairs after these changes: a value sets the named pair, null removes it. */
export function apply(changes: ReadonlyMap<string, string | null>, pairs: Pairs): Pairs {
  const all = new Map<string, string | null>([...pairs, ...changes]);
  return [...all].filter((pair): pair is [string, string] => pair[1] !== null);
}

/** The session in a file; undefined when the file holds none. */
export function parseSession(text: string): StoredSession | undefined {
  try {
    const json = JSON.parse(text) as Omit<StoredSession, 'end'> & { readonly end: number | null };
    const session: StoredSession = { ...json, end: json.end === null ? Infinity : json.end };
    return isWhole(session) ? session : undefined;
  } catch {
    return undefined;
  }
}

function isWhole(session: StoredSession): boolean {
  const { id, formerIds, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, end } = session;
  const pairs = [...session.attributes, ...session.indexes];
  const ids = [id, ...formerIds.flatMap((former) => [former.id, former.newId])];
  const texts = [...ids, ...pairs.flatMap(([name, text]) => [name, text])];
  const times = [creationTime, lastAccessedTime, ...formerIds.map(({ changedAt }) => changedAt)];
  const numbers = [...times, maxInactiveInterval, absoluteTimeout];
  return end >= 0 && numbers.every(Number.isFinite) && texts.every((text) => typeof text === 'string');
}
