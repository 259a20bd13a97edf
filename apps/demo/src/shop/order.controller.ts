import { BadRequestException, Body, ConflictException, Controller, NotFoundException, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';
import type { Order } from './order.table.js';
import { Orders } from './orders.js';

const LONGEST = 120;

@Controller('orders')
export class OrderController {
  constructor(private readonly orders: Orders) {}

  /** Orders what is in the cart. The order is cancelled unless it is paid within so many seconds. */
  @Post()
  async place(@Session() session: Session, @Body('seconds') seconds: unknown): Promise<Order> {
    if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1 || seconds > LONGEST) {
      throw new BadRequestException(`seconds takes whole seconds from 1 to ${LONGEST}`);
    }
    const items = session.getAttributeOrDefault('items', []);
    if (items.length === 0) throw new ConflictException('The cart is empty');
    const [to, fault] = [session.principalName ?? 'a visitor', session.getAttribute('fault')];
    const order = await this.orders.place({ sessionId: session.id, to, items, fault }, seconds);
    session.setAttribute('order', order.id);
    for (const name of ['items', 'fault'] as const) session.removeAttribute(name);
    return order;
  }

  /** Pays the latest order of this session. */
  @Post('pay')
  pay(@Session() session: Session): ReturnType<Orders['pay']> {
    const id = session.getAttribute('order');
    if (id === undefined) throw new NotFoundException('There is no order');
    return this.orders.pay(id);
  }
}
