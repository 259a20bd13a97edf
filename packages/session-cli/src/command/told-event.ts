import { shownText } from '@nest-session/core/internal';
import { fieldOf, type StreamEntry } from '@nest-session/redis-events/internal';

/** What a command tells of an event: what it was about, and no data. */
export interface ToldEvent {
  readonly type: string;
  /** When it was recorded: epoch milliseconds. */
  readonly at: number;
  /** The session, by the id that logs show. */
  readonly session?: string;
  /** The id that the session had before. */
  readonly previous?: string;
  /** The name of a deadline. */
  readonly name?: string;
  /** The id of a deadline, which the application did not choose. */
  readonly id?: string;
}

/** `shown`: a session id as logs show it. Undefined for an entry that is no event. */
export function toldEvent(entry: StreamEntry, shown: (id: string) => string): ToldEvent | undefined {
  const [type, session, previous] = ['type', 'session', 'previous'].map((name) => fieldOf(entry, name));
  if (type === undefined) return undefined;
  const [name, id] = [fieldOf(entry, 'name'), fieldOf(entry, 'id')];
  return {
    type,
    at: Number(fieldOf(entry, 'at')),
    ...(session !== undefined && { session: shown(session) }),
    ...(previous !== undefined && { previous: shown(previous) }),
    ...(name !== undefined && { name }),
    ...(id !== undefined && { id }),
  };
}

/** As a part of a line. */
export function shownEvent(event: ToldEvent | undefined): string {
  if (!event) return '-';
  const { type, session, previous, name, id } = event;
  const parts = [type, name, session ?? id].filter((part) => part !== undefined).map(shownText);
  return parts.join(' ') + (previous === undefined ? '' : ` (before ${shownText(previous)})`);
}
