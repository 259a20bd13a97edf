import { Module } from '@nestjs/common';
import { SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { AbandonedCarts } from './abandoned-carts.js';
import { Mailer } from './mailer.js';
import { ShopController } from './shop.controller.js';

@Module({
  imports: [
    SessionModule.forRoot({ timeout: '30m' }),
    RedisSessionModule.forRootAsync({ useFactory: () => ({ url: process.env['REDIS_URL'] }) }),
  ],
  controllers: [ShopController],
  providers: [AbandonedCarts, Mailer],
})
export class AppModule {}
