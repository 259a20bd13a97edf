/** What the file of a session holds. Pairs, not objects: an attribute may have any name, also `__proto__`. */
export interface StoredSession {
  readonly id: string;
  /** The ids that it had, what each was changed to and when; oldest first. */
  readonly formerIds: readonly (readonly [id: string, newId: string, changedAt: number])[];
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  readonly maxInactiveInterval: number;
  readonly absoluteTimeout: number;
  /** Epoch milliseconds; 0: it was ended, and its former ids are still to be known; Infinity, in JSON null: never. */
  readonly end: number;
  readonly attributes: Pairs;
  readonly indexes: Pairs;
}

/** For how long an id that was changed leads to the session, and is taken. */
export const FORMER_ID_LIFE = 60_000;

type Pairs = readonly (readonly [name: string, text: string])[];

/** When a session ends by itself. Its last access may lie ahead of now, if the clock was set back. */
export function endOf(session: Omit<StoredSession, 'end'>, now: number): number {
  const { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout } = session;
  const idleEnd = maxInactiveInterval < 0 ? Infinity : Math.min(lastAccessedTime, now) + maxInactiveInterval * 1000;
  return Math.min(idleEnd, absoluteTimeout < 0 ? Infinity : creationTime + absoluteTimeout * 1000);
}

/** When nobody has to know any more that there was this session. */
export function neededUntil({ end, formerIds }: StoredSession): number {
  return Math.max(end, ...formerIds.map(([, , changedAt]) => changedAt + FORMER_ID_LIFE));
}

/** The pairs with these changes: what is named is set, or removed with null; all else stays. */
export function apply(changes: ReadonlyMap<string, string | null>, pairs: Pairs): Pairs {
  const all = new Map<string, string | null>([...pairs, ...changes]);
  return [...all].filter((pair): pair is [string, string] => pair[1] !== null);
}

/** The session that a file holds; undefined when it holds none. */
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
  const pairs = [...session.attributes, ...session.indexes, ...formerIds];
  const texts = [id, ...pairs.flatMap(([name, text]) => [name, text])];
  const times = [creationTime, lastAccessedTime, ...formerIds.map(([, , changedAt]) => changedAt)];
  const numbers = [...times, maxInactiveInterval, absoluteTimeout];
  return end >= 0 && numbers.every(Number.isFinite) && texts.every((text) => typeof text === 'string');
}
