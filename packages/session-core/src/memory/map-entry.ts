/** What the memory has of a session. */
export interface MapEntry {
  id: string;
  readonly creationTime: number;
  lastAccessedTime: number;
  authenticatedAt: number | undefined;
  /** Greater than that of every session that began, or was signed in to, before. */
  order: number;
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
