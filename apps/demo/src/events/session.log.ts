import { Injectable, Logger } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { SessionEvent } from '@nest-session/core';

/** Plain `@OnEvent` listeners hear of session events too; best effort, which is enough for a log. */
@Injectable()
export class SessionLog {
  readonly #logger = new Logger(SessionLog.name);

  @OnEvent('session.created')
  @OnEvent('session.deleted')
  @OnEvent('session.expired')
  write({ type, sessionId }: SessionEvent): void {
    this.#logger.log(`${type} ${sessionId}`);
  }
}
