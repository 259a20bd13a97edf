import type { AttributeChanges } from './tracked-attributes.js';

/** A live session as a store hands it out. Times are epoch milliseconds of the store's clock. */
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
  /**
   * Milliseconds until the session ends if it is not renewed, by the store's clock; undefined only when it never does.
   * From it follows when the next access is to be recorded.
   */
  readonly timeToLive: number | undefined;
}

/**
 * What a store is asked to do with a session, in one atomic step.
 *
 * A session is alive until its end, and not a moment longer: `maxInactiveInterval` after it was last renewed, or
 * `absoluteTimeout` after its creation, whichever comes first. What is not alive is `gone`, also before anybody has
 * noticed that its time was over, and nothing makes it alive again.
 *
 * For 60 s after a session has changed its id, and over several such changes, its old id leads to it: a request that had
 * loaded it may still do what it could have done just before. It is answered `moved`, and may touch the session, end it
 * (`delete`, or an interval of 0) and change attributes that no index follows from. To all else the answer is `gone`:
 * whoever has planted that id before a login, and holds a request open across it, must not take the session over.
 */
export type SessionChange = CreateSession | UpdateSession | TouchSession | DeleteSession;

/**
 * Stores a session that does not exist yet; its creation, and its last access, are now. Answered `created`; `collision`
 * when another session has the id; `gone` when one of `presentedIds` was changed for another less than 60 s ago: this is
 * a late request, which must not give the client another session than the one it has.
 */
export interface CreateSession {
  readonly kind: 'create';
  readonly id: string;
  /** What the client presented and what opened nothing. */
  readonly presentedIds: readonly string[];
  readonly maxInactiveInterval: number;
  /** -1: none. */
  readonly absoluteTimeout: number;
  readonly attributes: AttributeChanges;
  readonly indexes: IndexChanges;
}

/**
 * Changes a session that is alive, and renews it unless it is to be kept idle. When its times, as they are now, are over,
 * that ends it with what was changed, and it keeps its id. Answered `saved` or `moved`; `gone`; `collision` when another
 * session has `newId`; `conflict` when `expected` is not so. A change of id that is sent again, because its answer was
 * lost, finds that it was done: it is `saved`, and nothing of it is done again.
 */
export interface UpdateSession {
  readonly kind: 'update';
  readonly id: string;
  /** The id it has from now on: nothing is found under the old one any more. */
  readonly newId?: string | undefined;
  /** Only when it changed; 0 ends the session, as deleted. */
  readonly maxInactiveInterval?: number | undefined;
  /** Only when it changed; counts from the creation that the store has recorded; -1: none. */
  readonly absoluteTimeout?: number | undefined;
  /** No access: it ends when it would have ended, or when changed times say so, counted from its last access. */
  readonly keepsIdle?: boolean;
  /** Only those that changed. */
  readonly attributes: AttributeChanges;
  readonly indexes: IndexChanges;
  /**
   * Nothing is written unless the attribute has exactly this text, undefined meaning none; also when it has the text that
   * is to be written. A request that is `moved` is then not told what there is: it is `gone`.
   */
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
}

/** Records an access to a session that is alive, and so renews it. Answered `saved`, `moved` or `gone`. */
export interface TouchSession {
  readonly kind: 'touch';
  readonly id: string;
}

/** Ends a session that is alive. Answered `saved`, `moved` or `gone`. */
export interface DeleteSession {
  readonly kind: 'delete';
  readonly id: string;
}

/** By the name of an index, the value under which it lists the session from now on, any string; null: under none. */
export type IndexChanges = ReadonlyMap<string, string | null>;

/**
 * What has become of a change. `created`, `saved` and `moved`: all of it was done, the last under a later id than the one
 * that was given. `gone`, `collision` and `conflict`: nothing was done. `current` is the text that there is.
 */
export type WriteReply =
  | { readonly outcome: 'created'; readonly creationTime: number }
  | { readonly outcome: 'saved' }
  | { readonly outcome: 'moved' }
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'collision' }
  | { readonly outcome: 'conflict'; readonly current: string | undefined };
