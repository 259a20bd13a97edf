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

/** What a store is asked to do with a session, in one atomic step. */
export type SessionChange = CreateSession | UpdateSession | TouchSession | DeleteSession;

/** Stores a session that does not exist yet. */
export interface CreateSession {
  readonly kind: 'create';
  readonly id: string;
  /** The ids the client presented and that opened nothing: when one has just been rotated, the answer is `gone`. */
  readonly presentedIds: readonly string[];
  readonly maxInactiveInterval: number;
  /** -1: none. */
  readonly absoluteTimeout: number;
  readonly attributes: AttributeChanges;
  readonly indexes: IndexChanges;
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
  readonly indexes: IndexChanges;
  /** Writes only if the store still has this text for the attribute, undefined meaning none. */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
}

/** Records an access to a session that is alive: it expires `maxInactiveInterval` from now. */
export interface TouchSession {
  readonly kind: 'touch';
  readonly id: string;
}

/** Ends a session. */
export interface DeleteSession {
  readonly kind: 'delete';
  readonly id: string;
}

/** By the name of an index, the value under which it lists the session from now on; null: under none. */
export type IndexChanges = ReadonlyMap<string, string | null>;

/**
 * `saved`: all of it was done. `moved`: so it was, but another request had changed the id of the session, and the client
 * has the token of the later id. Nothing was done when: `gone`, the session has ended, or had its id changed and this is
 * not a change that may follow it; `collision`, the new id is taken; `conflict`, the store has another text than
 * `expected`.
 */
export type WriteReply =
  | { readonly outcome: 'saved'; /** of a created session */ readonly creationTime?: number }
  | { readonly outcome: 'moved' }
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'collision' }
  | { readonly outcome: 'conflict'; readonly current: string | undefined };
