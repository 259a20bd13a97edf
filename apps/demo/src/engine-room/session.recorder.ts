import { Injectable, type OnModuleInit } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionIdChangedEvent } from '@nest-session/core';
import { Journal } from './journal.js';
import { answeredRequests } from './request-costs.js';

/** Writes into the journal what the library reports, and what requests cost. */
@Injectable()
export class SessionRecorder implements OnModuleInit {
  constructor(private readonly journal: Journal) {}

  onModuleInit(): void {
    answeredRequests.subscribe(({ sessionId, ...request }) => {
      this.journal.write(sessionId, { type: 'request', ...request }).catch(() => undefined);
    });
  }

  @OnSessionEvent(SessionEvent)
  record(event: SessionEvent): Promise<void> {
    const { id, type, at, sessionId, session, principalName, dataLost } = event;
    const previousSessionId = event instanceof SessionIdChangedEvent ? event.previousSessionId : undefined;
    const items = session.getAttributeOrDefault('items', []);
    return this.journal.write(sessionId, {
      id,
      type,
      at,
      sessionId,
      previousSessionId,
      principalName,
      items,
      dataLost,
    });
  }
}
