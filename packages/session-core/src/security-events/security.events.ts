import type { IncomingMessage } from 'node:http';
import { SecurityEventLimiter } from './security-event.limiter.js';
import { type RequestFacts, SecurityEvent, type SecurityEventKind, type SecurityFacts } from './security-event.js';

/** What the reporting code knows about an event. */
export interface SecurityReport extends Omit<SecurityFacts, keyof RequestFacts | 'sessionId'> {
  /** The Node.js request. */
  readonly request?: IncomingMessage | undefined;
  /** The session id as the store knows it. */
  readonly sessionId?: string | undefined;
}

/** Receives security events. */
export interface SecurityEventListener {
  listensTo(kind: SecurityEventKind): boolean;
  /** Whether nobody needs a line in the log about such events. */
  replacesLog(kind: SecurityEventKind): boolean;
  hear(event: SecurityEvent): void;
}

/** Turns the parts of a report into the facts of an event. */
export interface SecurityReportReader {
  /** Returns the id as log lines show it. */
  shownId(id: string): string;
  factsOf(request: IncomingMessage): RequestFacts;
}

/** The security events of one application. Without a listener, a report costs nothing. */
export class SecurityEvents {
  readonly #limiter = new SecurityEventLimiter((event) => this.#listener?.hear(event));
  readonly #reader: SecurityReportReader;
  #listener: SecurityEventListener | undefined;

  constructor(reader: SecurityReportReader) {
    this.#reader = reader;
  }

  /**
   * Reports an event. Never throws. Returns false when no handler wants such events instead of a line in the log: then
   * the caller logs it, once.
   */
  report(kind: SecurityEventKind, { request, sessionId, ...facts }: SecurityReport = {}): boolean {
    const listener = this.#listener;
    if (!listener?.listensTo(kind)) return false;
    const { shownId, factsOf } = this.#reader;
    const all = {
      ...(request && factsOf(request)),
      ...facts,
      sessionId: sessionId === undefined ? undefined : shownId(sessionId),
    };
    // Each action of an admin is one of its own: none stands for another.
    if (kind === 'admin-action') listener.hear(new SecurityEvent(kind, all));
    else this.#limiter.add(kind, all);
    return listener.replacesLog(kind);
  }

  /** Delivers the waiting events, and then sends all later events to `listener`. Undefined stops the delivery. */
  listen(listener: SecurityEventListener | undefined): void {
    this.#limiter.flush();
    this.#listener = listener;
  }
}
