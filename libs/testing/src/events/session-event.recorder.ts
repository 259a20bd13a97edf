import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import type { SessionEventClass } from '@nest-session/core/internal';

// A suspended process receives nothing, so the timeout is counted in this many parts, however long each of them takes.
const PARTS = 20;
// Node.js fires a timer at once that is longer, such as Infinity.
const LONGEST_PART = 2 ** 31 - 1;

interface Waiter {
  readonly matches: (event: SessionEvent) => boolean;
  readonly resolve: (event: SessionEvent) => void;
}

/**
 * Records session events, so that a test can wait for one of them and then look at all of them. As a provider of an
 * application, it is an event handler: it records the events that this instance handles, and makes the instance a
 * member of its group.
 */
@Injectable()
export class SessionEventRecorder {
  #events: SessionEvent[] = [];
  readonly #waiters = new Set<Waiter>();

  /** Records an event. As a provider, the recorder is called for each event that its instance handles. */
  @OnSessionEvent(SessionEvent)
  record(event: SessionEvent): void {
    this.#events.push(event);
    for (const waiter of this.#waiters) if (waiter.matches(event)) waiter.resolve(event);
  }

  /**
   * Resolves to the first event of this type (and session), either at once or as soon as it is recorded. The event
   * stays recorded, so the next call returns it again. Other handlers of the event may still be running.
   * @throws Error that lists the recorded events, after `timeout` milliseconds (default 20000)
   */
  next<E extends SessionEvent>(
    eventClass: SessionEventClass<E>,
    sessionId?: string,
    options?: { readonly timeout?: number },
  ): Promise<E>;
  next(
    kind: SessionEvent['type'] | SessionEventClass,
    sessionId?: string,
    options?: { readonly timeout?: number },
  ): Promise<SessionEvent>;
  async next(
    kind: SessionEvent['type'] | SessionEventClass,
    sessionId?: string,
    { timeout = 20_000 }: { readonly timeout?: number } = {},
  ): Promise<SessionEvent> {
    const matches = matcher(kind, sessionId);
    const recorded = this.#events.find(matches);
    if (recorded) return recorded;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        matches,
        resolve: (event) => {
          clearInterval(timer);
          this.#waiters.delete(waiter);
          resolve(event);
        },
      };
      this.#waiters.add(waiter);
      let left = PARTS;
      const timer = setInterval(
        () => {
          if (--left > 0) return;
          clearInterval(timer);
          this.#waiters.delete(waiter);
          reject(new Error(this.#missing(kind, sessionId, timeout)));
        },
        Math.min(timeout / PARTS, LONGEST_PART),
      );
    });
  }

  /** Returns a copy of all events in the order in which they were recorded, or of the events of one session. */
  all(sessionId?: string): SessionEvent[] {
    return this.#events.filter((event) => sessionId === undefined || event.sessionId === sessionId);
  }

  /** Counts the recorded events of this type (and session). A redelivery counts again. */
  count(kind: SessionEvent['type'] | SessionEventClass, sessionId?: string): number {
    return this.#events.filter(matcher(kind, sessionId)).length;
  }

  /** Removes all recorded events. Pending calls of `next()` keep waiting. */
  clear(): void {
    this.#events = [];
  }

  #missing(kind: SessionEvent['type'] | SessionEventClass, sessionId: string | undefined, timeout: number): string {
    const wanted = `${kindName(kind)}${sessionId === undefined ? '' : ` of session ${sessionId}`}`;
    const recorded = this.#events.map((event) => `\n  ${event.id} at ${new Date(event.at).toISOString()}`);
    return `No event ${wanted} within ${timeout} ms; recorded instead:${recorded.join('') || ' nothing'}`;
  }
}

function matcher(kind: SessionEvent['type'] | SessionEventClass, sessionId?: string): (event: SessionEvent) => boolean {
  return (event) =>
    (typeof kind === 'string' ? event.type === kind : event instanceof kind) &&
    (sessionId === undefined || event.sessionId === sessionId);
}

function kindName(kind: SessionEvent['type'] | SessionEventClass): string {
  return typeof kind === 'string' ? `'${kind}'` : kind.name;
}
