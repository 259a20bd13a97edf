import { Injectable, Logger } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';

/** A shop would write a mail here. What throws is called again. */
@Injectable()
export class AbandonedCarts {
  readonly #logger = new Logger(AbandonedCarts.name);

  @OnSessionEvent(SessionExpiredEvent)
  remind({ session, principalName }: SessionExpiredEvent): void {
    const items = session.getAttributeOrDefault('items', []);
    // Quoted: what a client has sent could otherwise look like another line of the log.
    const owner = principalName === undefined ? 'somebody' : JSON.stringify(principalName);
    const left = items.map((item) => JSON.stringify(item));
    if (left.length > 0) this.#logger.log(`${owner} has left behind: ${left.join(', ')}`);
  }
}
