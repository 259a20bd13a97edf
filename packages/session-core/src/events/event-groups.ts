/** An instance of a group. */
export interface ConsumerState {
  /** Unique name of the instance: host name, process id and a UUID. */
  readonly name: string;
  /** Number of events that were delivered to it and are not finished. */
  readonly pending: number;
  /** Milliseconds since it last asked for events or renewed a lease. */
  readonly idle: number;
}

/** The state of a group: one of its instances handles each event. */
export interface EventGroupInfo {
  /** The option `events.group` of its instances. */
  readonly name: string;
  /** Number of kept events that it has not read. */
  readonly lag: number;
  /** When the oldest that it has not read was recorded: epoch ms by Redis' clock; undefined when it has read all. */
  readonly oldestUnread: number | undefined;
  /** Number of events that it has read and not finished, including those that wait for a retry. */
  readonly pending: number;
  /** Number of events that wait for a retry. */
  readonly retrying: number;
  /** Number of events that were removed before it had handled them. */
  readonly dropped: number;
  /** Number of its dead letters that were removed, too old or too many, before anybody had dealt with them. */
  readonly lostDeadLetters: number;
  /** Its instances. A dead one stays while it has pending events, and for at least an hour. */
  readonly consumers: readonly ConsumerState[];
}

/** `live`: one of its instances is alive, and nothing was removed. `unknown`: there is no such group. */
export type RemoveGroupReply = 'removed' | 'live' | 'unknown';

/** An event that a group could not handle, or a stray key or member that stood in the place of something else. */
export interface DeadLetter<Event> {
  /** Pass it to `replay()` or `discard()`. */
  readonly id: string;
  /** When it became a dead letter: epoch ms by Redis' clock. */
  readonly at: number;
  /** Why: the errors of the handlers, at most 1,000 characters, or what is foreign. */
  readonly reason: string;
  /** The group that could not handle the event; undefined for a stray key or member. */
  readonly group: string | undefined;
  /** The first handler that failed, as `Class.method`; undefined when instances ended over it, and for a stray key. */
  readonly handler: string | undefined;
  /** Number of attempts; 0 for a stray key or member. */
  readonly attempts: number;
  /** Names of the handlers that succeeded, as `Class.method`; a replay does not call them again. */
  readonly succeeded: readonly string[];
  /**
   * The event of the last attempt; undefined for one of a newer version and for what is foreign. Without data when
   * there was none, and when `omittedBytes` is set.
   */
  readonly event: Event | undefined;
  /** The bytes of data over 256 KiB, which a dead letter lacks: a replay has them only as long as the store does. */
  readonly omittedBytes: number | undefined;
  /** The stray key, or the member of a bucket; undefined for an event. */
  readonly member: string | undefined;
}

/** Chooses dead letters. */
export interface DeadLetterFilter {
  /** The name of the group; unset: all groups. */
  readonly group?: string;
}

/**
 * The result of replaying a dead letter. `replayed`: its group handles it again; `gone`: it does not exist; `orphaned`:
 * its group does not exist; `foreign`: it is no event, so no handler can take it.
 */
export type ReplayReply = 'replayed' | 'gone' | 'orphaned' | 'foreign';

/** @throws RangeError for what is neither a whole number nor Infinity */
export function assertLimit(limit: number): void {
  if (limit === Infinity || (Number.isInteger(limit) && limit >= 0)) return;
  throw new RangeError('`limit` must be a whole number that is not negative');
}

/** The groups that handle the events of a store, and their dead letters: see `EventGroups` and `DeadlineEvents`. */
export interface EventGroupsOf<Event> {
  list(): Promise<EventGroupInfo[]>;
  remove(name: string): Promise<RemoveGroupReply>;
  deadLetters(
    options?: DeadLetterFilter & { readonly after?: string; readonly limit?: number },
  ): Promise<DeadLetter<Event>[]>;
  replay(id: string): Promise<ReplayReply>;
  replayAll(filter?: DeadLetterFilter): Promise<number>;
  discard(id: string): Promise<boolean>;
  discardAll(filter?: DeadLetterFilter): Promise<number>;
}

/** The injection token of the `EventGroupsOf<SessionEvent>` of a store that has groups, which it provides globally. */
export const SESSION_EVENT_GROUPS = Symbol('SESSION_EVENT_GROUPS');
