import type { SessionEvent } from '@nest-session/core';
import type { DeadlineEvent } from '@nest-session/deadlines';
import type { DeadLetter } from '@nest-session/core/internal';
import { shownInstant } from '../http/shown-times.js';
import { type ShownValue, shownValue } from '../http/shown-value.js';
import type { EventSource } from './event-sources.js';

/** A dead letter as it is shown. */
export interface ShownDeadLetter extends Pick<DeadLetter<unknown>, 'reason' | 'attempts' | 'succeeded'> {
  /** With what its event is about before it: unique. */
  readonly id: string;
  readonly of: EventSource;
  /** When it became one. */
  readonly time: string | null;
  readonly group: string | null;
  readonly handler: string | null;
  /** Bytes of its data that were too large to keep with it. */
  readonly omittedBytes: number | null;
  /** Whether a handler could take it again. Stray keys and members can only be discarded. */
  readonly canBeReplayed: boolean;
  /** Undefined for a stray key or member, and for an event of a newer version. */
  readonly event?: ShownSessionEvent | ShownDeadlineEvent;
}

interface ShownSessionEvent {
  readonly type: string;
  readonly sessionId: string;
  readonly principalName: string | null;
  readonly time: string | null;
}

interface ShownDeadlineEvent extends ShownValue {
  readonly type: 'deadline';
  readonly id: string;
  readonly name: string;
  readonly key: string;
  readonly dueTime: string | null;
}

/** What decides what is shown of the content. */
export interface LetterContext {
  readonly shownId: (id: string) => string;
  readonly data: ((name: string, data: unknown) => unknown) | undefined;
}

export function showDeadLetter(
  of: EventSource,
  letter: DeadLetter<SessionEvent | DeadlineEvent>,
  context: LetterContext,
): ShownDeadLetter {
  const { id, at, reason, group, handler, attempts, succeeded, event, omittedBytes } = letter;
  return {
    id: `${of}:${id}`,
    of,
    time: shownInstant(at),
    reason,
    group: group ?? null,
    handler: handler ?? null,
    attempts,
    succeeded,
    omittedBytes: omittedBytes ?? null,
    canBeReplayed: group !== undefined,
    ...(event && { event: isOfDeadline(event) ? showDeadline(event, context) : showSessionEvent(event, context) }),
  };
}

function isOfDeadline(event: SessionEvent | DeadlineEvent): event is DeadlineEvent {
  return 'dueAt' in event;
}

function showSessionEvent(event: SessionEvent, { shownId }: LetterContext): ShownSessionEvent {
  const { type, sessionId, at } = event;
  return { type, sessionId: shownId(sessionId), principalName: principalIn(event), time: shownInstant(at) };
}

function showDeadline(event: DeadlineEvent, { data }: LetterContext): ShownDeadlineEvent {
  const { id, name, key, dueAt } = event;
  // The data is decoded when it is read.
  const shown = shownValue(data && (() => data(name, event.data)));
  return { type: 'deadline', id, name, key, dueTime: shownInstant(dueAt), ...shown };
}

/** The name cannot be read without its key. */
function principalIn(event: SessionEvent): string | null {
  try {
    return event.principalName ?? null;
  } catch {
    return null;
  }
}
