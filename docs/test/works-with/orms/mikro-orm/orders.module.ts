import { MikroORM } from '@mikro-orm/core';
import { EnsureRequestContext, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { EntityManager, LibSqlDriver } from '@mikro-orm/libsql';
import { MikroOrmModule } from '@mikro-orm/nestjs';
import { Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { Orders } from './orders.js';

@Entity()
class Order {
  @PrimaryKey({ type: 'integer' })
  id!: number;

  @Property({ type: 'string' })
  item!: string;
}

@Injectable()
class MikroOrmOrders implements Orders, OnModuleInit {
  constructor(
    private readonly orm: MikroORM,
    private readonly manager: EntityManager,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.orm.schema.update();
  }

  // A handler of session events is called outside of a request.
  @EnsureRequestContext()
  async add(item: string): Promise<number> {
    const order = this.manager.create(Order, { item });
    await this.manager.flush();
    return order.id;
  }

  @EnsureRequestContext()
  async itemOf(id: number): Promise<string | undefined> {
    return (await this.manager.findOne(Order, id))?.item;
  }
}

@Module({
  imports: [MikroOrmModule.forRoot({ driver: LibSqlDriver, dbName: 'orders.db', entities: [Order] })],
  providers: [{ provide: Orders, useClass: MikroOrmOrders }],
  exports: [Orders],
})
export class OrdersModule {}
