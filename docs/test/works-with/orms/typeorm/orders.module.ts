import { Injectable, Module } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, PrimaryGeneratedColumn, Repository } from 'typeorm';
import { Orders } from './orders.js';

@Entity('orders')
class Order {
  @PrimaryGeneratedColumn()
  id!: number;

  @Column()
  item!: string;
}

@Injectable()
class TypeOrmOrders implements Orders {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  async add(item: string): Promise<number> {
    return (await this.orders.save({ item })).id;
  }

  async itemOf(id: number): Promise<string | undefined> {
    return (await this.orders.findOneBy({ id }))?.item;
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'sqljs', autoLoadEntities: true, synchronize: true }),
    TypeOrmModule.forFeature([Order]),
  ],
  providers: [{ provide: Orders, useClass: TypeOrmOrders }],
  exports: [Orders],
})
export class OrdersModule {}
