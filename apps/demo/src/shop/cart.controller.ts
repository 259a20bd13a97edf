import { BadRequestException, Body, Controller, Delete, HttpCode, Post, UseGuards } from '@nestjs/common';
import { Session, SkipCsrf } from '@nest-session/core';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { ShortTextPipe } from '../short-text.pipe.js';

const MOST_ITEMS = 100;

@Controller('cart')
export class CartController {
  /** Requests that arrive at once each add their item: `updateAttribute` starts again from what it lost a race to. */
  // Without a token, so that curl may add as in the README. Pages of other origins may not.
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
