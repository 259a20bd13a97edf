// The application of a user who keeps orders in a database.
import 'reflect-metadata';
import { Body, Controller, Get, type INestApplication, Injectable, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnSessionEvent, Session, SessionDeletedEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { Orders } from './orders.js';
import { OrdersModule } from './orders.module.js';

declare module '@nest-session/core' {
  interface SessionAttributes {
    order: number;
  }
}

/** The order of a visitor: its id in the session, its item in the database. */
export interface Ordered {
  readonly session: string;
  readonly order: number | undefined;
  readonly item: string | undefined;
}

@Controller('order')
class OrderController {
  constructor(private readonly orders: Orders) {}

  @Post()
  async order(@Session() session: Session, @Body('item') item: string): Promise<void> {
    session.setAttribute('order', await this.orders.add(item));
  }

  @Get()
  async ordered(@Session() session: Session): Promise<Ordered> {
    const order = session.getAttribute('order');
    const item = order === undefined ? undefined : await this.orders.itemOf(order);
    return { session: session.id, order, item };
  }

  @Post('leave')
  leave(@Session() session: Session): void {
    session.invalidate();
  }
}

/** Writes a row for each session that ends. */
@Injectable()
export class Ends {
  readonly items: (string | undefined)[] = [];

  constructor(private readonly orders: Orders) {}

  @OnSessionEvent(SessionDeletedEvent)
  async record({ id }: SessionDeletedEvent): Promise<void> {
    const row = await this.orders.add(id);
    this.items.push(await this.orders.itemOf(row));
  }
}

/** Opens it on a free port. */
export async function openShop(url: string): Promise<INestApplication> {
  @Module({
    // Longer than usual: the machine has several of these applications, and compilers, at a time.
    imports: [OrdersModule, SessionModule.forRoot(), RedisSessionModule.forRoot({ url, commandTimeout: '5s' })],
    controllers: [OrderController],
    providers: [Ends],
  })
  class ShopModule {}

  const shop = await NestFactory.create(ShopModule, { logger: ['error', 'warn'], abortOnError: false });
  await shop.listen(0, '127.0.0.1');
  return shop;
}
