import { Injectable, Logger } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';

/** A shop would write a mail here. What throws is called again. */
@Injectable()
export class AbandonedCarts {
  readonly #logger = new Logger(AbandonedCarts.name);

  @OnSessionEvent(SessionExpiredEvent)
  remind({ session, principalName }: SessionExpiredEvent): void {
    const items = session.getAttributeOrDefault('items', []);
    if (items.length === 0) return;
    // Quoted, or a visitor could write lines of his own into the log.
    const whose = principalName === undefined ? 'A visitor' : JSON.stringify(principalName);
    this.#logger.log(`${whose} has left behind: ${JSON.stringify(items)}`);
  }
}
