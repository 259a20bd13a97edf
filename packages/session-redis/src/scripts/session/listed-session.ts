/** A live session in an index: its id, PTTL of its shadow key, and five fields of its session hash. */
export type ListedSession = [
  id: string,
  ttl: number,
  creationTime: string | null,
  lastAccessedTime: string | null,
  maxInactiveInterval: string | null,
  authenticatedAt: string | null,
  device: string | null,
];

/** What list-sessions replies. */
export type ListReply = [last: string, latest: string, ...sessions: ListedSession[]];

/** A page of an index. */
export interface ListedPage {
  /** The lowest score of the page; undefined when it is the last page. */
  readonly last: string | undefined;
  /** The highest score of the index; undefined when it is empty. */
  readonly latest: string | undefined;
  readonly sessions: readonly ListedSession[];
}

/** What a batch has ended. */
export interface EndedBatch {
  /** The number of sessions. */
  readonly ended: number;
  /** The score of the last entry to end; undefined when none is left. */
  readonly latest: string | undefined;
  /** The error of a session that a stray key keeps alive. */
  readonly problem: string | undefined;
  /** The ids of such sessions. */
  readonly foreign: readonly string[];
}

/** A key of another type that stood in the place of an index. */
export interface StrayIndex {
  readonly type: string;
  readonly key: string;
  readonly listed: number;
}

/** What a look at buckets has found. `overdue`: how long ago the oldest end was due that nobody has claimed, in ms. */
export interface SessionsLook {
  readonly sessions: number;
  readonly overdue: number;
  readonly buckets: number;
}
