import { Injectable, Module, type OnModuleInit, type OnModuleDestroy } from '@nestjs/common';
import { createClient } from '@libsql/client';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/libsql';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Orders } from './orders.js';

const orders = sqliteTable('orders', { id: integer().primaryKey(), item: text().notNull() });

@Injectable()
class DrizzleOrders implements Orders, OnModuleInit, OnModuleDestroy {
  readonly #client = createClient({ url: 'file:orders.db' });
  readonly #db = drizzle({ client: this.#client });

  async onModuleInit(): Promise<void> {
    await this.#db.run(sql`CREATE TABLE IF NOT EXISTS ${orders} (id INTEGER PRIMARY KEY, item TEXT NOT NULL)`);
  }

  onModuleDestroy(): void {
    this.#client.close();
  }

  async add(item: string): Promise<number> {
    const [row] = await this.#db.insert(orders).values({ item }).returning();
    return row!.id;
  }

  async itemOf(id: number): Promise<string | undefined> {
    const [row] = await this.#db.select().from(orders).where(eq(orders.id, id));
    return row?.item;
  }
}

@Module({ providers: [{ provide: Orders, useClass: DrizzleOrders }], exports: [Orders] })
export class OrdersModule {}
