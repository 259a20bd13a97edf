import type { IncomingMessage } from 'node:http';
import { SecurityEventLimiter } from './security-event.limiter.js';
import type { RequestFacts, SecurityEvent, SecurityEventKind, SecurityFacts } from './security-event.js';

/** What is known where an event happens. */
export interface SecurityReport extends Pick<SecurityFacts, 'principalName' | 'reason' | 'limit'> {
  /** The request of Node.js. */
  readonly request?: IncomingMessage | undefined;
  /** The session id as the store knows it. */
  readonly sessionId?: string | undefined;
}

/** Who wants to hear of security events. */
export interface SecurityEventListener {
  listensTo(kind: SecurityEventKind): boolean;
  hear(event: SecurityEvent): void;
}

/** How the parts of a report become those of an event. */
export interface SecurityReportReader {
  /** The id as log lines show it. */
  shownId(id: string): string;
  factsOf(request: IncomingMessage): RequestFacts;
}

/** The security events of one application. While nobody listens, a report costs nothing. */
export class SecurityEvents {
  readonly #limiter = new SecurityEventLimiter((event) => this.#listener?.hear(event));
  readonly #reader: SecurityReportReader;
  #listener: SecurityEventListener | undefined;

  constructor(reader: SecurityReportReader) {
    this.#reader = reader;
  }

  /** Reports what happened. Never throws. False when nobody listens to such events: then write a log line, once. */
  report(kind: SecurityEventKind, { request, sessionId, ...facts }: SecurityReport = {}): boolean {
    if (!this.#listener?.listensTo(kind)) return false;
    const { shownId, factsOf } = this.#reader;
    this.#limiter.add(kind, {
      ...(request && factsOf(request)),
      ...facts,
      sessionId: sessionId === undefined ? undefined : shownId(sessionId),
    });
    return true;
  }

  /** From now on, `listener` hears of the events; undefined: nobody does. What waits is delivered first. */
  listen(listener: SecurityEventListener | undefined): void {
    this.#limiter.flush();
    this.#listener = listener;
  }
}
