import { Module } from '@nestjs/common';
import { FaultsModule } from '../faults/faults.module.js';
import { AbandonedCarts } from './abandoned-carts.js';
import { CartController } from './cart.controller.js';
import { Outbox } from './outbox.js';

@Module({ imports: [FaultsModule], controllers: [CartController], providers: [AbandonedCarts, Outbox] })
export class CartModule {}
