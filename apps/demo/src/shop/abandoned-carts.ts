import { Injectable, Logger } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';
import { Faults } from '../engine-room/faults.js';
import { Outbox } from './outbox.js';

/** Writes a mail about the cart of a session that expired. If it throws, the library calls it again. */
@Injectable()
export class AbandonedCarts {
  readonly #logger = new Logger(AbandonedCarts.name);

  constructor(
    private readonly faults: Faults,
    private readonly outbox: Outbox,
  ) {}

  @OnSessionEvent(SessionExpiredEvent)
  async remind(event: SessionExpiredEvent): Promise<void> {
    const { session, principalName } = event;
    const items = session.getAttributeOrDefault('items', []);
    if (items.length === 0) return;
    await this.faults.strike(event, session.getAttribute('fault')); // only in a demo
    const to = principalName ?? 'a visitor';
    await this.outbox.send(event, { to, text: 'You left something in your cart:', items });
    // Quote the text, or a visitor could forge log lines.
    const whose = principalName === undefined ? 'A visitor' : JSON.stringify(principalName);
    this.#logger.log(`${whose} has left behind: ${JSON.stringify(items)}`);
  }
}
