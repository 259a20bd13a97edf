import { Module } from '@nestjs/common';
import { AbandonedCarts } from './abandoned-carts.js';
import { AuthController } from './auth.controller.js';
import { CartController } from './cart.controller.js';
import { DevicesController } from './devices.controller.js';
import { OrderController } from './order.controller.js';
import { OrderTable } from './order.table.js';
import { Orders } from './orders.js';
import { Outbox } from './outbox.js';
import { SessionController } from './session.controller.js';

@Module({
  controllers: [AuthController, CartController, DevicesController, OrderController, SessionController],
  providers: [AbandonedCarts, Orders, OrderTable, Outbox],
  exports: [Orders],
})
export class ShopModule {}
