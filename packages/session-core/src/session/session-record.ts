/** A live session as a store hands it out. Times are epoch milliseconds of the store's clock. */
export interface SessionRecord {
  /** What the store knows the session by. */
  readonly id: string;
  /** When the session was created. */
  readonly creationTime: number;
  /** When the last access was recorded; it never goes back. */
  readonly lastAccessedTime: number;
  /** Idle timeout in whole seconds; negative: none. */
  readonly maxInactiveInterval: number;
  /** Absolute timeout in whole seconds from the creation; negative: none. */
  readonly absoluteTimeout: number;
  /** Encoded by the serializer. */
  readonly attributes: Iterable<readonly [name: string, text: string]>;
  /**
   * Milliseconds until the session ends if nothing renews it, by the store's clock; undefined only when it never ends.
   * The library derives from it when the next touch is due.
   */
  readonly timeToLive: number | undefined;
}
