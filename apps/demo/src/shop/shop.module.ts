import { Module } from '@nestjs/common';
import { AbandonedCarts } from './abandoned-carts.js';
import { AuthController } from './auth.controller.js';
import { CartController } from './cart.controller.js';
import { DevicesController } from './devices.controller.js';
import { Outbox } from './outbox.js';
import { SessionController } from './session.controller.js';

@Module({
  controllers: [AuthController, CartController, DevicesController, SessionController],
  providers: [AbandonedCarts, Outbox],
})
export class ShopModule {}
