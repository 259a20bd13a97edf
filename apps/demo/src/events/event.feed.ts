import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionIdChangedEvent } from '@nest-session/core';
import { BehaviorSubject, concatMap, distinct, type Observable } from 'rxjs';

/** An event as the page is shown it. */
export interface FeedEntry {
  /** The same when an event is delivered again, by which the page shows it once. */
  readonly id: string;
  readonly type: SessionEvent['type'];
  readonly at: number;
  readonly sessionId: string;
  readonly previousSessionId: string | undefined;
  readonly principalName: string | undefined;
  readonly items: readonly string[];
  readonly dataLost: boolean;
}

const REMEMBERED = 200;

/**
 * The session events this process has handled. With several processes each would have its share, since an event is
 * handled by one of them.
 */
@Injectable()
export class EventFeed implements BeforeApplicationShutdown {
  readonly #entries = new BehaviorSubject<readonly FeedEntry[]>([]);

  /** The events of one session, those before its id changed included: the ones it has had, and all that follow. */
  of(sessionId: string): Observable<FeedEntry> {
    return this.#entries.pipe(
      concatMap((entries) => history(sessionId, entries)),
      distinct(({ id }) => id),
    );
  }

  @OnSessionEvent(SessionEvent)
  add(event: SessionEvent): void {
    const { id, type, at, sessionId, session, principalName, dataLost } = event;
    const entry = {
      id,
      type,
      at,
      sessionId,
      previousSessionId: event instanceof SessionIdChangedEvent ? event.previousSessionId : undefined,
      principalName,
      items: session.getAttributeOrDefault('items', []),
      dataLost,
    };
    this.#entries.next([...this.#entries.value, entry].slice(-REMEMBERED));
  }

  /** Ends the event streams, which would keep the server from closing. */
  beforeApplicationShutdown(): void {
    this.#entries.complete();
  }
}

/**
 * Goes back from the present id, never forward: a client that only knows an id from before the sign-in does not see what
 * the session has become.
 */
function history(sessionId: string, entries: readonly FeedEntry[]): FeedEntry[] {
  const own = entries.filter((entry) => entry.sessionId === sessionId);
  const before = own.find(({ previousSessionId }) => previousSessionId)?.previousSessionId;
  return before ? [...history(before, entries), ...own] : own;
}
