import type { Deadline, Deadlines, ScheduledDeadline } from '@nest-session/deadlines';

/** What a client does. `rest`: milliseconds before it. */
export interface Operation {
  readonly call: 'schedule' | 'reschedule' | 'cancel' | 'get';
  readonly key: string;
  readonly rest: number;
  /** The data of what it schedules, unlike all others. */
  readonly token: string;
  readonly ifExists: 'replace' | 'keep' | 'earlier' | 'later';
  /** Milliseconds from then, by the clock of the client where it is an instant. */
  readonly wait: number;
  readonly isInstant: boolean;
}

/** An operation, how it was answered, and when: epoch milliseconds. */
export interface PlayedOperation extends Operation {
  readonly from: number;
  readonly to: number;
  readonly answer: string | ScheduledDeadline<string>;
}

export function play(
  deadlines: Deadlines,
  kind: Deadline<string>,
  clients: readonly (readonly Operation[])[],
): Promise<PlayedOperation[][]>;
