import { Injectable, Module, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { PrismaLibSql } from '@prisma/adapter-libsql';
import { PrismaClient } from './generated/client.js';
import { Orders } from './orders.js';

@Injectable()
class PrismaOrders extends PrismaClient implements Orders, OnModuleInit, OnModuleDestroy {
  constructor() {
    super({ adapter: new PrismaLibSql({ url: 'file:orders.db' }) });
  }

  async onModuleInit(): Promise<void> {
    await this
      .$executeRaw`CREATE TABLE IF NOT EXISTS "Order" (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL)`;
  }

  async onModuleDestroy(): Promise<void> {
    await this.$disconnect();
  }

  async add(item: string): Promise<number> {
    return (await this.order.create({ data: { item } })).id;
  }

  async itemOf(id: number): Promise<string | undefined> {
    return (await this.order.findUnique({ where: { id } }))?.item;
  }
}

@Module({ providers: [{ provide: Orders, useClass: PrismaOrders }], exports: [Orders] })
export class OrdersModule {}
