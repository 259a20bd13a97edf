/** The session of an event, as far as a recorder can know it. */
export interface RecordedSession {
  readonly id: string;
  readonly attributeNames: string[];
  getAttribute(name: string): unknown;
}

/** What every session event has. */
export interface RecordedEvent {
  /** Derived from type and session id, such as `expired:<session id>`; the same after a redelivery. */
  readonly id: string;
  readonly type: RecordedEventType;
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly session: RecordedSession;
  readonly principalName: string | undefined;
  readonly dataLost: boolean;
}

export type RecordedEventType = 'created' | 'deleted' | 'expired' | 'id-changed';

/** The class of an event, for those who prefer it to the name of its type. */
export type RecordedEventClass<E extends RecordedEvent = RecordedEvent> = abstract new (...args: never[]) => E;

interface Waiter {
  readonly matches: (event: RecordedEvent) => boolean;
  readonly resolve: (event: RecordedEvent) => void;
}

/**
 * Remembers the session events that an application's handler passes to `record()`, so that a test can wait for one
 * instead of for a time, and then look at all of them.
 */
export class SessionEventRecorder {
  #events: RecordedEvent[] = [];
  readonly #waiters = new Set<Waiter>();

  record(event: RecordedEvent): void {
    this.#events.push(event);
    for (const waiter of this.#waiters) if (waiter.matches(event)) waiter.resolve(event);
  }

  /**
   * The first event of this kind (and session): at once when it has been recorded already, else as soon as it is.
   * Takes nothing away: asked again, it gives the same event.
   * @throws Error that lists what was recorded instead, after `timeout` (default 20000) milliseconds
   */
  next<E extends RecordedEvent>(
    eventClass: RecordedEventClass<E>,
    sessionId?: string,
    options?: { readonly timeout?: number },
  ): Promise<E>;
  next(
    kind: RecordedEventType | RecordedEventClass,
    sessionId?: string,
    options?: { readonly timeout?: number },
  ): Promise<RecordedEvent>;
  async next(
    kind: RecordedEventType | RecordedEventClass,
    sessionId?: string,
    { timeout = 20_000 }: { readonly timeout?: number } = {},
  ): Promise<RecordedEvent> {
    const matches = matcher(kind, sessionId);
    const recorded = this.#events.find(matches);
    if (recorded) return recorded;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        matches,
        resolve: (event) => {
          clearTimeout(timer);
          this.#waiters.delete(waiter);
          resolve(event);
        },
      };
      this.#waiters.add(waiter);
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        reject(new Error(this.#missing(kind, sessionId, timeout)));
      }, timeout);
    });
  }

  /** All events in the order in which they were recorded, or those of one session; a copy. */
  all(sessionId?: string): RecordedEvent[] {
    return this.#events.filter((event) => sessionId === undefined || event.sessionId === sessionId);
  }

  /** How many events of this kind (and session) were recorded; a redelivery counts again. */
  count(kind: RecordedEventType | RecordedEventClass, sessionId?: string): number {
    return this.#events.filter(matcher(kind, sessionId)).length;
  }

  /** Forgets what was recorded; whoever waits goes on waiting. */
  clear(): void {
    this.#events = [];
  }

  #missing(kind: RecordedEventType | RecordedEventClass, sessionId: string | undefined, timeout: number): string {
    const wanted = `${kindName(kind)}${sessionId === undefined ? '' : ` of session ${sessionId}`}`;
    const recorded = this.#events.map((event) => `\n  ${event.id} at ${new Date(event.at).toISOString()}`);
    return `No event ${wanted} within ${timeout} ms; recorded instead:${recorded.join('') || ' nothing'}`;
  }
}

function matcher(kind: RecordedEventType | RecordedEventClass, sessionId?: string): (event: RecordedEvent) => boolean {
  return (event) =>
    (typeof kind === 'string' ? event.type === kind : event instanceof kind) &&
    (sessionId === undefined || event.sessionId === sessionId);
}

function kindName(kind: RecordedEventType | RecordedEventClass): string {
  return typeof kind === 'string' ? `'${kind}'` : kind.name;
}
