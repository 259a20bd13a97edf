import type { AttributeChanges } from './tracked-attributes.js';

/** A session as a store hands it out. Times are epoch milliseconds of the store's clock. */
export interface SessionRecord {
  readonly id: string;
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  /** Whole seconds; negative: it does not expire for being unused. */
  readonly maxInactiveInterval: number;
  /** Whole seconds from the creation, after which it ends however much it is used; -1: none. */
  readonly absoluteTimeout: number;
  /** Encoded by the serializer. */
  readonly attributes: Iterable<readonly [name: string, text: string]>;
  /** Milliseconds until the session ends if it is not renewed, by the store's clock; undefined when it never does. */
  readonly timeToLive?: number | undefined;
}

/** What a session asks its store to do, in one atomic step. */
export type SessionChanges = CreateSession | UpdateSession | DeleteSession;

/** Stores a session that does not exist yet. */
export interface CreateSession {
  readonly kind: 'create';
  readonly id: string;
  /** The id the client presented and that opened nothing: when it has just been rotated, the answer is `gone`. */
  readonly presentedId: string | undefined;
  readonly maxInactiveInterval: number;
  /** -1: none. */
  readonly absoluteTimeout: number;
  readonly attributes: AttributeChanges;
}

/** Changes a session that is alive; renews it as well, unless it is to be kept idle. */
export interface UpdateSession {
  readonly kind: 'update';
  readonly id: string;
  /** The id it has from now on. */
  readonly newId?: string | undefined;
  /** Only when it changed; 0 ends the session. */
  readonly maxInactiveInterval?: number | undefined;
  /** Only when it changed; from the creation that the store has recorded; -1: none. */
  readonly absoluteTimeout?: number | undefined;
  /** No access: the session ends when it would have ended, or when changed times say so, counted from its last access. */
  readonly keepsIdle?: boolean;
  readonly attributes: AttributeChanges;
  /** Writes only if the store still has this text for the attribute, undefined meaning none. */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
}

/** Ends a session. */
export interface DeleteSession {
  readonly kind: 'delete';
  readonly id: string;
}

/** What has become of the record of an access: see `SessionRepository.touch()`. */
export type TouchReply = 'touched' | 'moved' | 'gone';

/**
 * `saved`: all of it was written. Nothing was written when: `gone`, the session has ended, or had its id changed by
 * another request and this change is not one that may follow it; `collision`, the new id is taken; `conflict`, the
 * store has another text than `expected`. An end follows the session to its new id, and is answered `gone` then: the
 * client has the token of that id, which is not to be taken away from it.
 */
export type WriteReply =
  | { readonly outcome: 'saved'; /** of a created session */ readonly creationTime?: number }
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'collision' }
  | { readonly outcome: 'conflict'; readonly current: string | undefined };
