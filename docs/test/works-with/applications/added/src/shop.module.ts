// What the author of a generated application writes, to have sessions.
import { Body, Controller, Get, Injectable, Module, Post } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { ScheduleModule } from '@nestjs/schedule';
import { OnSessionEvent, Session, SessionContext, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
  }
}

/** What was left behind in the carts of sessions that have expired. */
@Injectable()
export class LeftBehind {
  readonly items: string[] = [];

  @OnSessionEvent(SessionExpiredEvent)
  onSessionEvent({ session }: SessionExpiredEvent) {
    this.items.push(`${session.getAttributeOrDefault('items', []).join()} by @OnSessionEvent`);
  }

  @OnEvent('session.expired')
  onEvent({ session }: SessionExpiredEvent) {
    this.items.push(`${session.getAttributeOrDefault('items', []).join()} by @OnEvent`);
  }
}

@Injectable()
export class Cart {
  constructor(private readonly context: SessionContext) {}

  get items(): string[] {
    return this.context.session.getAttributeOrDefault('items', []);
  }
}

@Controller('shop')
export class ShopController {
  constructor(
    private readonly cart: Cart,
    private readonly leftBehind: LeftBehind,
  ) {}

  @Get('items')
  items() {
    return this.cart.items;
  }

  @Post('items')
  async add(@Session() session: Session, @Body('item') item: string) {
    await session.updateAttribute('items', (items = []) => [...items, item]);
  }

  @Post('leave')
  leave(@Session() session: Session) {
    session.maxInactiveInterval = 1;
  }

  @Get('left-behind')
  left() {
    return this.leftBehind.items;
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    EventEmitterModule.forRoot(),
    SessionModule.forRoot(),
    // A namespace for each program: test files run at the same time.
    RedisSessionModule.forRoot({ url: process.env.REDIS_URL, namespace: `shop-${process.pid}` }),
  ],
  controllers: [ShopController],
  providers: [Cart, LeftBehind],
})
export class ShopModule {}
