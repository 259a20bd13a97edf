import { Controller, HttpCode, Post, Put, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { SameOriginGuard } from '../../http/same-origin.guard.js';
import { SECONDS_LEFT } from '../side.js';
import { AbandonedCarts } from './abandoned-carts.js';
import { UnpaidOrders } from './unpaid-orders.js';

/** What comes to its end on the left side while nobody is there. */
@UseGuards(SameOriginGuard)
@Controller('compared')
export class ExpressSessionEnds {
  constructor(
    private readonly carts: AbandonedCarts,
    private readonly orders: UnpaidOrders,
  ) {}

  /** Lets the session end soon, and an instance be killed before the mail about it. */
  @Put('end')
  @HttpCode(204)
  async end(@Req() { session }: Request): Promise<void> {
    session.cookie.maxAge = SECONDS_LEFT * 1000;
    await this.carts.keep(session.id, session.items ?? []);
  }

  /** Orders what is in the cart, and lets this instance be killed before the order is due. */
  @Post('order')
  @HttpCode(204)
  order(@Req() { session }: Request): void {
    this.orders.place(session.id, session.items ?? []);
  }
}
