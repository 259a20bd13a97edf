/** What the memory has of a session. */
export interface MapEntry {
  id: string;
  readonly creationTime: number;
  lastAccessedTime: number;
  authenticatedAt: number | undefined;
  maxInactiveInterval: number;
  /** When its absolute timeout passes, in epoch milliseconds; Infinity for never. */
  absoluteExpiry: number;
  /** When it expires, in epoch milliseconds; Infinity for never. */
  deadline: number;
  readonly attributes: Map<string, string>;
  /** By the name of an index, the value under which it lists the session. */
  readonly indexes: Map<string, string>;
  device: string | undefined;
}

/** When the absolute timeout began. */
export function startOf({ creationTime, authenticatedAt = creationTime }: MapEntry): number {
  return Math.max(creationTime, authenticatedAt);
}

/** The times of a session that are not stored as such. */
export function timesOf(session: MapEntry): { absoluteTimeout: number } {
  const { absoluteExpiry } = session;
  return { absoluteTimeout: absoluteExpiry === Infinity ? -1 : Math.round((absoluteExpiry - startOf(session)) / 1000) };
}

/** When a timeout passes, in epoch milliseconds; Infinity for a timeout that never passes. */
export function endAfter(seconds: number, since: number): number {
  return seconds < 0 ? Infinity : since + seconds * 1000;
}
