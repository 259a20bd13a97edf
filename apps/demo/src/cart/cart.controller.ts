import { BadRequestException, Body, Controller, Delete, HttpCode, Post } from '@nestjs/common';
import { Session, SkipCsrf } from '@nest-session/core';
import { ShortTextPipe } from '../short-text.pipe.js';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
  }
}

const MOST_ITEMS = 100;

@Controller('cart')
export class CartController {
  /** Requests that arrive at once each add their item: `updateAttribute` starts again from what it lost a race to. */
  // So that curl may, as in the README: the worst that another page can do here is to fill a cart.
  @SkipCsrf()
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
