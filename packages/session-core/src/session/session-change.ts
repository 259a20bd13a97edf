import type { KeptAttributes } from './kept-attributes.js';

/**
 * A change that a store makes to a session in one atomic step.
 *
 * A session is alive until one of its two timeouts passes, and not a moment longer. The idle timeout,
 * `maxInactiveInterval`, counts from the last renewal. The absolute timeout counts from the creation or, if that was
 * later, from the last sign-in. A store answers `gone` for a session that is not alive, even if it has not noticed the
 * end yet. Nothing revives such a session.
 *
 * A request may load a session just before another request rotates it. So for 60 s, `FORWARDING_TIME`, after a
 * rotation, and across several rotations, the store makes changes of the old id under the new one, and answers
 * `forwarded`. It forwards only these changes: a touch, an end (`delete`, or an interval of 0), and changes of
 * attributes that no index depends on. It answers all others with `gone`. From a forwarded change, the store leaves out
 * each attribute that a sign-in in between did not keep, as `isKept()` decides: it neither writes nor removes nor
 * compares it.
 *
 * It forwards nothing across a rotation that `clears` or `closes`, or that changes the principal: one before and after
 * which the index of principals lists the session under two values, or under none and one. Otherwise an attacker could
 * plant the old id before a login, hold a request open across the login, and write into the session of the user, or end
 * it.
 *
 * With the `gone` of a sign-in, or of a change that `clears`, the store says `rotated` when the id was rotated less
 * than 60 s ago. So it does with every other update or deletion that it does not forward because the principal has
 * changed, the session was cleared, or its old id was closed. But for an end not where that signed a user out: see
 * `CreateSession`.
 */
export type SessionChange = CreateSession | UpdateSession | TouchSession | DeleteSession;

/**
 * Stores a session that does not exist yet. Its creation time and last access are now. The store answers:
 * - `created`;
 * - `collision` when another session has the id;
 * - `refused` when the principal has too many sessions, see `SessionLimit`;
 * - `revoked` when every session of the principal was ended meanwhile, see `begunAt`;
 * - `gone` when the session of one of `presentedIds` was rotated less than 60 s ago. The request is late, and its new
 *   session would replace the session that the client has. Not when the rotation removed the principal, or had both
 *   `clears` and `signsOut` and set none; unless another rotation has followed since that did neither.
 */
export interface CreateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'create';
  /** The id of the new session. */
  readonly id: string;
  /** The ids that the client presented and that opened nothing; none for a sign-in, which is never late. */
  readonly presentedIds: readonly string[];
  /** The idle timeout in seconds; negative: none. */
  readonly maxInactiveInterval: number;
  /** The absolute timeout in seconds; negative: none. */
  readonly absoluteTimeout: number;
  /** Somebody signs in: `authenticatedAt` is the creation time. */
  readonly signsIn?: boolean;
  /** What the application shows as the device of the session: a text of at most 200 bytes; undefined: none. */
  readonly device?: string | undefined;
  /** All attributes of the session. */
  readonly attributes: AttributeChanges;
  /** The values under which indexes list the session. */
  readonly indexes: IndexChanges;
  /** How many sessions the principal of the new session may have; undefined: any number. */
  readonly limit?: SessionLimit | undefined;
  /** See `UpdateSession`. */
  readonly begunAt?: number | undefined;
  /** How much the session may hold. The caller has counted the attributes, so a store refuses no creation for it. */
  readonly bounds?: ContentBounds | undefined;
}

/**
 * Changes a live session, and renews its idle timeout unless `keepsIdle` is set. If the change makes a timeout so short
 * that it has already passed, the session ends with the changed attributes, and keeps its id. The store answers:
 * - `saved`, or `forwarded` (see `SessionChange`);
 * - `gone` when the session is not alive;
 * - `collision` when another session has `newId`;
 * - `refused` when the principal has too many sessions, see `SessionLimit`;
 * - `revoked` when every session of the principal was ended meanwhile, see `begunAt`;
 * - `full` when the session would hold too much, see `ContentBounds`;
 * - `conflict` when an attribute does not have the `expected` text.
 *
 * A caller repeats a rotation whose reply was lost. The store answers the second one `saved`, and does not rotate
 * again.
 */
export interface UpdateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'update';
  /** The id under which the request loaded the session. */
  readonly id: string;
  /** The new id of the session. From then on, the old id finds nothing. */
  readonly newId?: string | undefined;
  /**
   * Only with `newId`: remove all attributes that this change does not set, whether the caller knows of them or not.
   * From then on, answer `gone` to changes of the old id, which were made for attributes that are gone.
   */
  readonly clears?: boolean;
  /** Only with `newId`: the same without removing attributes. It shuts out whoever else has the token. */
  readonly closes?: boolean;
  /**
   * Only with `newId`: somebody signs in. Set `authenticatedAt` to now. Remove all attributes that `isKept()` does not
   * keep and this change does not set, whether the caller knows of them or not. The rule also holds for changes of the
   * old id that the store forwards later: they must not bring back a removed attribute.
   */
  readonly signIn?: KeptAttributes | undefined;
  /**
   * Remove `authenticatedAt`: nobody is signed in any more, or another user who has not signed in. The session still
   * ends when its absolute timeout would have passed, unless this change sets that timeout. The store ignores this
   * field in a forwarded change: a user who has signed in since the caller loaded the session stays signed in.
   */
  readonly signsOut?: boolean;
  /** The idle timeout in seconds, only if it changed. Negative: none. 0 ends the session, as deleted. */
  readonly maxInactiveInterval?: number | undefined;
  /**
   * The absolute timeout in seconds, only if it changed. Negative: none. It counts from the later of two times that the
   * store has after this change: the creation time and `authenticatedAt`. Every `signIn` comes with both timeouts.
   */
  readonly absoluteTimeout?: number | undefined;
  /** Do not renew the idle timeout. If this change sets that timeout, it counts from the last access. */
  readonly keepsIdle?: boolean;
  /** What the application shows as the device of the session from now on, only if it changed. */
  readonly device?: string | undefined;
  /** Those that changed, and no others. */
  readonly attributes: AttributeChanges;
  /** Those whose value changed, and no others. */
  readonly indexes: IndexChanges;
  /**
   * How many sessions the principal of the session may have; undefined: any number. It comes with every change that
   * lists the session under a principal, and with every `newId` of a session that has a principal.
   */
  readonly limit?: SessionLimit | undefined;
  /**
   * Only where `indexes` list the session under a principal: when the request began that does so, by
   * `performance.now()` of this process; undefined: no matter when. Answer `revoked` when `deleteByIndex()` has begun
   * to end all sessions of that principal since then, on any instance: what the request has checked, such as a
   * password, may be over. A store may forget such an end after 10 minutes, `LONGEST_REQUEST`.
   */
  readonly begunAt?: number | undefined;
  /** How much the session may hold; undefined: any amount. */
  readonly bounds?: ContentBounds | undefined;
  /**
   * Answer `conflict` and write nothing unless the attribute has exactly this text; undefined: unless the session has
   * no such attribute. Answer `conflict` even if the attribute already has the new text. Answer a forwarded change
   * `gone`, without the current text.
   */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
  /**
   * The `memo` of the record that the caller, or for `updateAttribute()` another request, has loaded, or of the reply
   * to its creation: the same object. It is missing when the store gave none, and when that reply was lost.
   */
  readonly memo?: object | undefined;
}

/** Renews the idle timeout of a live session. Answers `touched`, `forwarded` or `gone`. */
export interface TouchSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'touch';
  /** See `UpdateSession`. */
  readonly id: string;
}

/** Ends a live session. Answers `deleted`, `forwarded` or `gone`. */
export interface DeleteSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'delete';
  /** See `UpdateSession`. */
  readonly id: string;
  /** Answer `gone`, and end nothing, unless this index lists the session under this value. */
  readonly listed?: { readonly indexName: string; readonly value: string } | undefined;
  /** What its deleted event says. @default 'revoked' */
  readonly reason?: SessionDeletedReason | undefined;
}

/**
 * How many live sessions the index of principals may list under a value, the session of the change included. A store
 * enforces the limit in each change whose `indexes` list a session under that value, and in no other one.
 *
 * If there would be more, the store either answers `refused`, or ends the surplus first, as deleted and each session
 * once. It ends those whose sign-in, or creation where nobody signed in, is the longest ago. It never lists more than
 * `atMost` at once, however many changes it makes at the same time. An expired session does not count, even if the
 * store has not noticed its end yet. A change of a session that is gone, or that ends its own session, ends no other
 * session, unless the session has ended only while the store made the change.
 */
export interface SessionLimit {
  /** The value in the index of principals. */
  readonly principal: string;
  /** The number of live sessions. */
  readonly atMost: number;
  /** What happens when there would be more. */
  readonly whenReached: 'end-oldest' | 'refuse';
}

/**
 * How much a session may hold, not counting the library's own attributes; Infinity: any amount. The caller has counted
 * the attributes that it loaded. The store counts those that others have stored since. It answers an update `full`,
 * with the name of the bound, if the session would then exceed the bound and hold more than before; `exceededBound()`
 * decides.
 *
 * A user must be able to sign in to a full session, and to end it. So updates with `signIn`, and updates that end their
 * session, are never `full`.
 */
export interface ContentBounds {
  /** The number of attributes. */
  readonly maxAttributes: number;
  /** Bytes that the names and texts of all attributes take in UTF-8. */
  readonly maxSessionSize: number;
}

/** The texts of attributes by name; null removes the attribute. */
export type AttributeChanges = ReadonlyMap<string, string | null>;

/**
 * By the name of an index, the value under which it lists the session from then on; null: under none. Names contain no
 * `:`, values any character. Values have at most 256 bytes, because `SessionIndexes` replaces longer ones by a hash.
 */
export type IndexChanges = ReadonlyMap<string, string | null>;

/** How a store answers a `CreateSession`. The `memo` is the one of `SessionRecord`. */
export type CreateReply =
  | { readonly outcome: 'created'; readonly creationTime: number; readonly memo?: object | undefined }
  | { readonly outcome: 'collision' | 'gone' | 'refused' | 'revoked' };

/**
 * How a store answers an `UpdateSession`. `authenticatedAt`: the time of the sign-in that was saved. `current`: the
 * text of the attribute, undefined when there is none. `rotated`: see `SessionChange`; unset: false.
 */
export type UpdateReply =
  | { readonly outcome: 'saved'; readonly authenticatedAt?: number }
  | { readonly outcome: 'forwarded' | 'collision' | 'refused' | 'revoked' }
  | { readonly outcome: 'gone'; readonly rotated?: boolean | undefined }
  | { readonly outcome: 'full'; readonly bound: keyof ContentBounds }
  | { readonly outcome: 'conflict'; readonly current: string | undefined };

/** How a store answers a `TouchSession`. */
export interface TouchReply {
  /** What the store did. */
  readonly outcome: TouchOutcome;
}

/** How a store answers a `DeleteSession`. */
export interface DeleteReply {
  /** What the store did. */
  readonly outcome: 'deleted' | 'forwarded' | 'gone';
  /** Only with `gone`, see `SessionChange`. @default false */
  readonly rotated?: boolean | undefined;
}

/** The outcome of a touch. `forwarded`: the session was touched, under a later id than the given one. */
export type TouchOutcome = 'touched' | 'forwarded' | 'gone';

/**
 * How a store answers a change. It has made the whole change when it answers `created`, `saved`, `touched`, `deleted`
 * or `forwarded`, and otherwise nothing.
 */
export type WriteReply = CreateReply | UpdateReply | TouchReply | DeleteReply;

/** Milliseconds: no request that signs somebody in takes longer. See `UpdateSession.begunAt`. */
export const LONGEST_REQUEST = 600_000;

/** Milliseconds after a rotation for which a store forwards changes of the old id: see `SessionChange`. */
export const FORWARDING_TIME = 60_000;

/**
 * Why a session was deleted:
 * - `signed-out`: by `signOut()`, or by `BrowserSessions.end()`;
 * - `invalidated`: by `invalidate()`, or by a timeout of 0;
 * - `revoked`: from outside, by `Sessions.end()`, `Sessions.endAll()` or a method of the repository;
 * - `limit`: another sign-in of the user was one too many for `maxSessions`;
 * - `everybody`: by `endEverySession()`.
 */
export type SessionDeletedReason = 'signed-out' | 'invalidated' | 'revoked' | 'limit' | 'everybody';
