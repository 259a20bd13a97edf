import type { ReadonlySession } from './session.js';

/** A live session as a store returns it. Times are epoch milliseconds by the store's clock. */
export interface SessionRecord extends Pick<
  ReadonlySession,
  'id' | 'creationTime' | 'lastAccessedTime' | 'maxInactiveInterval' | 'absoluteTimeout'
> {
  /** When somebody signed in to the session; undefined when nobody did. */
  readonly authenticatedAt?: number | undefined;
  /**
   * The texts of the attributes, as they were written. One that costs something to read is read when its attribute is
   * first read. No generator: it is read more than once.
   */
  readonly attributes: ReadonlyMap<string, StoredText> | readonly (readonly [name: string, text: StoredText])[];
  /**
   * Milliseconds until the session expires unless it is renewed, by the store's clock; undefined only if it never
   * expires. It decides when the next touch is due.
   */
  readonly timeToLive: number | undefined;
  /** The `device` of the last change that had one. What `load()` returns needs it only for @nest-session/admin. */
  readonly device?: string | undefined;
  /** What the store needs to know when it writes the session. It comes back in each `UpdateSession` as `memo`. */
  readonly memo?: object | undefined;
}

/** The text of an attribute, or what gives it. */
export type StoredText = string | UnreadText;

/** A text that costs something to read. */
export interface UnreadText {
  /** Its size in UTF-8. */
  readonly bytes: number;
  /** May throw a SessionStoreError, which the read of the attribute then throws. */
  read(): string;
}
