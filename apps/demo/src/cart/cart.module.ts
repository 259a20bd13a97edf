import { Module } from '@nestjs/common';
import { AbandonedCarts } from './abandoned-carts.js';
import { CartController } from './cart.controller.js';

@Module({ controllers: [CartController], providers: [AbandonedCarts] })
export class CartModule {}
