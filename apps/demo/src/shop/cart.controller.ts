import { BadRequestException, Body, Controller, Delete, HttpCode, Post, UseGuards } from '@nestjs/common';
import { Session, SkipCsrf } from '@nest-session/core';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { ShortTextPipe } from '../short-text.pipe.js';

const MOST_ITEMS = 100;

@Controller('cart')
export class CartController {
  /**
   * If requests arrive at once, each adds its item: after a conflict, `updateAttribute` repeats with the newer value.
   */
  // It needs no CSRF token, so that curl may add items as in the README. Pages of other origins may not.
  @SkipCsrf()
  @UseGuards(SameOriginGuard)
  @Post()
  add(@Session() session: Session, @Body('name', ShortTextPipe) name: string): Promise<string[] | undefined> {
    return session.updateAttribute('items', (items = []) => {
      if (items.length >= MOST_ITEMS) throw new BadRequestException(`The cart is full with ${MOST_ITEMS} items`);
      return [...items, name];
    });
  }

  @Delete()
  @HttpCode(204)
  empty(@Session() session: Session): void {
    session.removeAttribute('items');
  }
}
