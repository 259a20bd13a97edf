/**
 * Milliseconds for which a store forwards changes of an old id to the new one after a rotation: a request may have loaded
 * the session just before.
 */
export const FORWARDING_TIME = 60_000;

/**
 * A change that a store makes to a session in one atomic step.
 *
 * A session is alive until its idle timeout (`maxInactiveInterval` since it was last renewed) or its absolute timeout
 * (`absoluteTimeout` since its creation or, if that was later, its last sign-in) passes, and not a moment longer. A session that is not alive is `gone`, even
 * before the store has noticed its end, and nothing revives it.
 *
 * For 60 s after a rotation, and across several rotations, the store forwards changes of the old id to the new one,
 * because a request may have loaded the session just before. It answers `forwarded`. Such a change may touch the
 * session, end it (`delete`, or an interval of 0) and change attributes that no index depends on. The store answers
 * `gone` to everything else: an attacker who planted the old id before a login, and holds a request open across it,
 * must not take the session over. Of the attributes of a forwarded change, the store leaves out those that a sign-in on
 * the way did not keep, neither writing nor removing nor comparing them: see `UpdateSession.signIn`.
 */
export type SessionChange = CreateSession | UpdateSession | TouchSession | DeleteSession;

/**
 * Stores a session that does not exist yet. Its creation time and last access are now. Answers:
 * - `created`;
 * - `collision`: another session has the id;
 * - `refused`: see `SessionLimit`;
 * - `gone`: the session of one of `presentedIds` was rotated less than 60 s ago. The request is a late one, and its new
 *   session would replace the session that the client has.
 */
export interface CreateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'create';
  /** The id of the new session. */
  readonly id: string;
  /** The ids that the client presented and that opened nothing. */
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
  /** Where the session is listed. */
  readonly indexes: IndexChanges;
  /** How many sessions the principal of the new session may have; undefined: any number. */
  readonly limit?: SessionLimit | undefined;
  /** How much the session may hold, for a store that counts from here on. It refuses no creation: all of it was counted. */
  readonly bounds?: ContentBounds | undefined;
}

/**
 * Changes a live session, and renews its idle timeout unless `keepsIdle` is set. If one of its timeouts, as changed,
 * has already passed, the session ends with the changed attributes and keeps its id. Answers:
 * - `saved`, or `forwarded` (see `SessionChange`);
 * - `gone`;
 * - `collision`: another session has `newId`;
 * - `refused`: see `SessionLimit`;
 * - `full`: see `ContentBounds`;
 * - `conflict`: `expected` is not met.
 *
 * A rotation that arrives a second time, because its reply was lost, is answered `saved` and not made again.
 */
export interface UpdateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'update';
  /** The id under which the request loaded the session. */
  readonly id: string;
  /** The new id of the session. From then on, the old id finds nothing. */
  readonly newId?: string | undefined;
  /**
   * Only with `newId`: remove all attributes but those of this change, also those that the caller does not know of. No
   * change of the old id is forwarded then, because it was made for what is gone: the answer is `gone`.
   */
  readonly clears?: boolean;
  /**
   * Only with `newId`: somebody signs in. `authenticatedAt` is now. Remove the attributes that are not kept, also those
   * that the caller does not know of, unless this change sets them; `isKept()` decides. The rule also holds for changes
   * of the old id that are forwarded from then on: they must not bring back what was removed.
   */
  readonly signIn?: KeptAttributes | undefined;
  /**
   * Nobody is signed in any more, or somebody who has not signed in: remove `authenticatedAt`. The end by the absolute
   * timeout stays, unless this change sets that. Of a forwarded change, the store leaves this out: whoever has signed in
   * since the caller loaded the session stays signed in.
   */
  readonly signsOut?: boolean;
  /** The idle timeout in seconds, only if it changed. Negative: none. 0 ends the session, as deleted. */
  readonly maxInactiveInterval?: number | undefined;
  /**
   * The absolute timeout in seconds, only if it changed. Negative: none. It counts from the later of the creation time
   * and `authenticatedAt` in the store, after this change. Every `signIn` comes with both timeouts.
   */
  readonly absoluteTimeout?: number | undefined;
  /** Do not renew the idle timeout. A changed idle timeout counts from the last access. */
  readonly keepsIdle?: boolean;
  /** What the application shows as the device of the session from now on, only if it changed. */
  readonly device?: string | undefined;
  /** Only the attributes that changed. */
  readonly attributes: AttributeChanges;
  /** Only the indexes whose value changed. */
  readonly indexes: IndexChanges;
  /**
   * How many sessions the principal of the session may have; undefined: any number. Comes with every change that lists the
   * session under a principal, and with every `newId` of a session that has one.
   */
  readonly limit?: SessionLimit | undefined;
  /** How much the session may hold; undefined: any amount. */
  readonly bounds?: ContentBounds | undefined;
  /**
   * Answer `conflict` and write nothing unless the attribute has exactly this text; undefined: no such attribute. This
   * also holds when the attribute already has the new text. A forwarded change is answered `gone`, without the text.
   */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
  /**
   * The `memo` of the record or of the creation that the caller knows the session from, the same object; in an
   * `updateAttribute()` it may be that of another request. Missing when there was none, or when the reply of the creation
   * was lost.
   */
  readonly memo?: object | undefined;
}

/** Renews the idle timeout of a live session. Answers `touched`, `forwarded` or `gone`. */
export interface TouchSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'touch';
  /** The id under which the request loaded the session. */
  readonly id: string;
}

/** Ends a live session. Answers `deleted`, `forwarded` or `gone`. */
export interface DeleteSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'delete';
  /** The id under which the request loaded the session. */
  readonly id: string;
  /** Answer `gone` and end nothing unless this index lists the session under this value. */
  readonly listed?: { readonly indexName: string; readonly value: string } | undefined;
}

/**
 * How many live sessions the index of principals may list under a value. It is enforced by each change whose `indexes`
 * list a session there, this session included, and never by others. When there would be more, the change either ends
 * those whose sign-in (or creation, where nobody signed in) is the longest ago, each once, as deleted, or is answered
 * `refused`. All that before the session is listed: at no moment are there more than `atMost`, however many changes are
 * made at once. A session that has expired does not count, even before the store has noticed that. A change of a
 * session that is gone, or that ends its own session, ends no others; unless it is gone only in the meantime.
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
 * How much a session may hold, without the library's own attributes; Infinity: any amount. The caller has counted what it
 * has loaded. The store counts what others have stored since then: an update after which the session would exceed a
 * bound, and hold more than before, is answered `full`, with the name of that bound. A session must remain usable by who
 * signs in, and it must be possible to end it: updates with `signIn`, and those that end their session, are never `full`.
 * `exceededBound()` decides.
 */
export interface ContentBounds {
  /** The number of attributes. */
  readonly maxAttributes: number;
  /** Bytes that the names and texts of all attributes take in UTF-8. */
  readonly maxSessionSize: number;
}

/** Which attributes a session keeps when somebody signs in. */
export interface KeptAttributes {
  /** Exactly these; unset: all but those that are bound to the visitor. */
  readonly only?: readonly string[] | undefined;
  /** The names that are bound to the visitor, besides those that begin with `nest-session.visitor.`. */
  readonly butNot: readonly string[];
}

/** The texts of attributes by name; null removes the attribute. */
export type AttributeChanges = ReadonlyMap<string, string | null>;

/**
 * By the name of an index, the value under which it lists the session from then on; null: none. Names have no `:`, values
 * any character. Those of `SessionIndexes` have at most 256 bytes: longer values are hashed.
 */
export type IndexChanges = ReadonlyMap<string, string | null>;

/** How a store answers a `CreateSession`. `memo`: as in a `SessionRecord`. */
export type CreateReply =
  | { readonly outcome: 'created'; readonly creationTime: number; readonly memo?: object | undefined }
  | { readonly outcome: 'collision' | 'gone' | 'refused' };

/**
 * How a store answers an `UpdateSession`. `authenticatedAt`: the time of the sign-in that was saved. `current`: the text
 * of the attribute, undefined when there is none.
 */
export type UpdateReply =
  | { readonly outcome: 'saved'; readonly authenticatedAt?: number }
  | { readonly outcome: 'forwarded' | 'gone' | 'collision' | 'refused' }
  | { readonly outcome: 'full'; readonly bound: keyof ContentBounds }
  | { readonly outcome: 'conflict'; readonly current: string | undefined };

/** How a store answers a `TouchSession`. */
export interface TouchReply {
  /** What the store did, see `TouchSession`. */
  readonly outcome: TouchOutcome;
}

/** How a store answers a `DeleteSession`. */
export interface DeleteReply {
  /** What the store did, see `DeleteSession`. */
  readonly outcome: 'deleted' | 'forwarded' | 'gone';
}

/** The outcome of a touch. `forwarded`: the session was touched, under a later id than the given one. */
export type TouchOutcome = 'touched' | 'forwarded' | 'gone';

/**
 * How a store answers a change. `created`, `saved`, `touched`, `deleted` and `forwarded`: the whole change was made,
 * but for what a sign-in kept out of a forwarded one. `gone`, `collision`, `refused`, `full` and `conflict`: nothing was.
 */
export type WriteReply = CreateReply | UpdateReply | TouchReply | DeleteReply;
