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
  /**
   * When the oldest event that it has not read was recorded: epoch ms by Redis' clock; undefined when it has read all.
   */
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

/**
 * The result of removing a group. `removed`: it is gone; `live`: one of its instances is alive, and nothing was
 * removed; `unknown`: there is no such group.
 */
export type RemoveGroupReply = 'removed' | 'live' | 'unknown';
