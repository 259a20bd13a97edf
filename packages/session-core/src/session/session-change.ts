/**
 * What a store is asked to do with a session, in one atomic step.
 *
 * A session is alive until its end and not a moment longer: `maxInactiveInterval` after it was last renewed, or
 * `absoluteTimeout` after its creation, whichever comes first. A session that is not alive is `gone`, even before the
 * store has noticed its end, and nothing revives it.
 *
 * For 60 s after a session has changed its id, and across several such changes, the old id is forwarded to the new one:
 * a request that had loaded the session may still do what it could have done just before. The store answers
 * `forwarded`. Such a request may touch the session, end it (`delete`, or an interval of 0) and change attributes that
 * no index follows from. Everything else is answered `gone`: an attacker who planted the old id before a login, and
 * holds a request open across it, must not take the session over.
 */
export type SessionChange = CreateSession | UpdateSession | TouchSession | DeleteSession;

/**
 * Stores a session that does not exist yet. Its creation time and last access are now. Answers:
 * - `created`;
 * - `collision`: another session has the id;
 * - `gone`: one of `presentedIds` was changed less than 60 s ago. This request is a late one, and a session of its own
 *   would replace the one that the client has.
 */
export interface CreateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'create';
  /** The id of the new session. */
  readonly id: string;
  /** The ids that the client presented and that opened no session. */
  readonly presentedIds: readonly string[];
  /** Seconds; negative: no idle timeout. */
  readonly maxInactiveInterval: number;
  /** Seconds; negative: no absolute timeout. */
  readonly absoluteTimeout: number;
  /** All attributes of the session. */
  readonly attributes: AttributeChanges;
  /** Where the session is listed. */
  readonly indexes: IndexChanges;
}

/**
 * Changes a live session, and renews it unless `keepsIdle`. When its timeouts, as they are after the change, have
 * passed, the session ends with the changed attributes and keeps its id. Answers:
 * - `saved`, or `forwarded` (see `SessionChange`);
 * - `gone`;
 * - `collision`: another session has `newId`;
 * - `conflict`: `expected` is not met.
 *
 * A change of id that arrives a second time, because its reply was lost, finds that it was done: the answer is `saved`,
 * and nothing is done again.
 */
export interface UpdateSession {
  /** Tells the kinds of changes apart. */
  readonly kind: 'update';
  /** The id under which the request loaded the session. */
  readonly id: string;
  /** The session's id from now on; nothing is found under the old one any more. */
  readonly newId?: string | undefined;
  /** Seconds; only when it changed. 0 ends the session, as deleted. Negative: no idle timeout. */
  readonly maxInactiveInterval?: number | undefined;
  /** Seconds from the creation time that the store has recorded; only when it changed. Negative: no absolute timeout. */
  readonly absoluteTimeout?: number | undefined;
  /** Not an access: the session is not renewed. Timeouts that changed count from its last access. */
  readonly keepsIdle?: boolean;
  /** Only the attributes that changed. */
  readonly attributes: AttributeChanges;
  /** Only the indexes whose value changed. */
  readonly indexes: IndexChanges;
  /**
   * Write nothing unless the attribute has exactly this text, undefined meaning no such attribute; not even when it
   * already has the text that the change would write. A forwarded request is then answered `gone`, without the text.
   */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
}

/** Records an access to a live session, and so renews it. Answers `touched`, `forwarded` or `gone`. */
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
}

/** By name, the text of an attribute to store, or null to remove the attribute. */
export type AttributeChanges = ReadonlyMap<string, string | null>;

/** By the name of an index, the value (any string) under which it lists the session from now on; null: under none. */
export type IndexChanges = ReadonlyMap<string, string | null>;

/** How a store answers a `CreateSession`. */
export type CreateReply =
  { readonly outcome: 'created'; readonly creationTime: number } | { readonly outcome: 'collision' | 'gone' };

/** How a store answers an `UpdateSession`. `current`: the text that the attribute has, undefined when there is none. */
export type UpdateReply =
  | { readonly outcome: 'saved' | 'forwarded' | 'gone' | 'collision' }
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

/** `forwarded`: the session was touched, but under a later id than the given one. */
export type TouchOutcome = 'touched' | 'forwarded' | 'gone';

/**
 * How a store answers a change. `created`, `saved`, `touched`, `deleted` and `forwarded`: the whole change was made.
 * `gone`, `collision` and `conflict`: nothing was.
 */
export type WriteReply = CreateReply | UpdateReply | TouchReply | DeleteReply;
