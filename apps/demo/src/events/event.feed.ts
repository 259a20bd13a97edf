import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionIdChangedEvent } from '@nest-session/core';
import { type Observable, ReplaySubject } from 'rxjs';

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

const REMEMBERED = 50;

/**
 * The session events this process has handled, for the page: the last 50 and all that follow. With several processes
 * each would have its share, since an event is handled by one of them.
 */
@Injectable()
export class EventFeed implements BeforeApplicationShutdown {
  readonly #entries = new ReplaySubject<FeedEntry>(REMEMBERED);

  get entries(): Observable<FeedEntry> {
    return this.#entries;
  }

  @OnSessionEvent(SessionEvent)
  add(event: SessionEvent): void {
    const { id, type, at, sessionId, session, principalName, dataLost } = event;
    this.#entries.next({
      id,
      type,
      at,
      sessionId,
      previousSessionId: event instanceof SessionIdChangedEvent ? event.previousSessionId : undefined,
      principalName,
      items: session.getAttributeOrDefault('items', []),
      dataLost,
    });
  }

  /** Ends the event streams, which would keep the server from closing. */
  beforeApplicationShutdown(): void {
    this.#entries.complete();
  }
}
