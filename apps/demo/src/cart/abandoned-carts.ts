import { Injectable, Logger } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';

/** A shop would write a mail here. What throws is called again. */
@Injectable()
export class AbandonedCarts {
  readonly #logger = new Logger(AbandonedCarts.name);

  @OnSessionEvent(SessionExpiredEvent)
  remind({ session, principalName = 'somebody' }: SessionExpiredEvent): void {
    const items = session.getAttributeOrDefault('items', []);
    if (items.length > 0) this.#logger.log(`${principalName} has left behind: ${items.join(', ')}`);
  }
}
