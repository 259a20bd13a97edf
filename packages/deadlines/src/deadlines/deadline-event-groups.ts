import type {
  DeadLetter,
  DeadLetterFilter,
  EventGroupInfo,
  RemoveGroupReply,
  ReplayReply,
} from '@nest-session/core/internal';
import type { DeadlineEvent } from './deadline-event.js';

/** A deadline that a group could not handle, or a stray key or member that stood in the place of one. */
export type DeadlineDeadLetter = DeadLetter<DeadlineEvent>;

/** The state of a group: one of its instances handles each deadline. */
export type DeadlineGroupInfo = EventGroupInfo;

/**
 * Lists and changes the groups that handle deadlines, and their dead letters. Inject it: the module of the store
 * provides it. A call rejects with a SessionStoreError when the store fails.
 */
export abstract class DeadlineEvents {
  /** All groups, ordered by name. The numbers are read one after the other, so they may not fit together exactly. */
  abstract list(): Promise<DeadlineGroupInfo[]>;

  /**
   * Creates a group, so that what comes due is kept for instances that start later: from the oldest one that is kept
   * on, or from now on. Resolves to false when the group exists. @throws RangeError when the name is empty
   */
  abstract create(name: string, options?: { readonly from?: 'oldest' | 'now' }): Promise<boolean>;

  /** Removes a group, so that nothing is kept for it, unless one of its instances is alive. Its dead letters stay. */
  abstract remove(name: string): Promise<RemoveGroupReply>;

  /**
   * The oldest dead letters after the one with the id `after`, by default 100 at most.
   * @throws RangeError when `after` is not the id of a dead letter, or `limit` no whole number
   */
  abstract deadLetters(
    options?: DeadLetterFilter & { readonly after?: string; readonly limit?: number },
  ): Promise<DeadlineDeadLetter[]>;

  /** Lets its group try it again, but no handlers that have succeeded. */
  abstract replay(id: string): Promise<ReplayReply>;

  /** Replays every dead letter whose group exists. Resolves to the number of replayed ones. */
  abstract replayAll(filter?: DeadLetterFilter): Promise<number>;

  /** Deletes a dead letter. Resolves to false when there is none. */
  abstract discard(id: string): Promise<boolean>;

  /** Deletes every dead letter. Resolves to the number of deleted ones. */
  abstract discardAll(filter?: DeadLetterFilter): Promise<number>;
}
