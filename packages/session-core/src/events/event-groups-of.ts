import type { DeadLetter, DeadLetterFilter, ReplayReply } from './dead-letter.js';
import type { EventGroupInfo, RemoveGroupReply } from './event-group-info.js';

/** The groups that handle the events of a store, and their dead letters: what `DeadlineEvents` is for deadlines. */
export interface EventGroupsOf<Event> {
  /** All groups, ordered by name. */
  list(): Promise<EventGroupInfo[]>;
  /** Removes a group of which no instance is alive. */
  remove(name: string): Promise<RemoveGroupReply>;
  /** The dead letters, the oldest first. @throws RangeError when `after` is not the id of a dead letter */
  deadLetters(
    options?: DeadLetterFilter & { readonly after?: string; readonly limit?: number },
  ): Promise<DeadLetter<Event>[]>;
  /** Lets the group of a dead letter handle it again. */
  replay(id: string): Promise<ReplayReply>;
  /** Replays all. Resolves to the number of replayed ones. */
  replayAll(filter?: DeadLetterFilter): Promise<number>;
  /** Deletes a dead letter. Resolves to false when there is none. */
  discard(id: string): Promise<boolean>;
  /** Deletes all. Resolves to the number of deleted ones. */
  discardAll(filter?: DeadLetterFilter): Promise<number>;
}

/** The injection token of the `EventGroupsOf<SessionEvent>` of a store that has groups, which it provides globally. */
export const SESSION_EVENT_GROUPS = Symbol('SESSION_EVENT_GROUPS');
