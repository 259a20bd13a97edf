import { Controller, HttpCode, Post, Put, UseGuards } from '@nestjs/common';
import { Session, SkipCsrf } from '@nest-session/core';
import { Journal } from '../engine-room/journal.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { Orders } from '../shop/orders.js';
import { MILLISECONDS_TO_LIVE, SECONDS_LEFT } from './side.js';

/** What comes to its end on the right side while nobody is there. */
@SkipCsrf()
@UseGuards(SameOriginGuard)
@Controller('compared')
export class NestSessionEnds {
  constructor(
    private readonly orders: Orders,
    private readonly journal: Journal,
  ) {}

  /** Lets the session end soon, and an instance be killed before the mail about it. See `AbandonedCarts`. */
  @Put('end')
  @HttpCode(204)
  end(@Session() session: Session): void {
    session.setAttribute('fault', 'killed');
    session.maxInactiveInterval = SECONDS_LEFT;
  }

  /** Orders what is in the cart, and lets this instance be killed before the order is due. */
  @Post('order')
  @HttpCode(204)
  async order(@Session() session: Session): Promise<void> {
    const { id: sessionId } = session;
    const items = session.getAttributeOrDefault('items', []);
    await this.orders.place({ sessionId, to: 'a visitor', items }, SECONDS_LEFT);
    setTimeout(() => void this.#die(sessionId), MILLISECONDS_TO_LIVE); // only in a demo
  }

  async #die(sessionId: string): Promise<void> {
    await this.journal.write(sessionId, { type: 'killed' });
    process.kill(process.pid, 'SIGKILL');
  }
}
