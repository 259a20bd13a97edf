import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { deadline, DeadlineEvent, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { RedisDeadlineModule } from '../../src/redis/redis-deadline.module.js';

LeakGuard.install();

const paymentDue = deadline<{ total: number }>('order.payment-due');

interface Order {
  readonly id: string;
  readonly total: number;
}

/** Stands for a database, with what has happened to each order. */
@Injectable()
class OrderRepository {
  readonly states = new Map<string, string>();
  readonly #done = new Set<string>();

  async insert({ id }: Order): Promise<void> {
    this.states.set(id, 'unpaid');
  }

  async cancelIfUnpaid(id: string, { idempotencyKey }: { readonly idempotencyKey: string }): Promise<boolean> {
    if (this.states.get(id) !== 'unpaid' || this.#done.has(idempotencyKey)) return false;
    this.#done.add(idempotencyKey);
    this.states.set(id, 'cancelled');
    return true;
  }
}

@Injectable()
class Mail {
  readonly sent: string[] = [];

  async sorry(id: string, total: number): Promise<void> {
    this.sent.push(`${id}: ${total}`);
  }
}

@Injectable()
class Orders {
  constructor(
    private readonly deadlines: Deadlines,
    private readonly orders: OrderRepository,
    private readonly mail: Mail,
  ) {}

  async place(order: Order) {
    await this.deadlines.schedule(paymentDue, order.id, { in: '15m', data: { total: order.total } });
    await this.orders.insert(order);
  }

  paid(id: string) {
    return this.deadlines.cancel(paymentDue, id);
  }

  extend(id: string) {
    return this.deadlines.reschedule(paymentDue, id, { in: '5m' });
  }

  @OnDeadline(paymentDue)
  async unpaid({ key, data, dueAt, id, attempt }: DeadlineEvent<typeof paymentDue>) {
    expect([typeof dueAt, attempt]).toEqual(['number', 1]);
    if (await this.orders.cancelIfUnpaid(key, { idempotencyKey: id })) await this.mail.sorry(key, data.total);
  }
}

it('cancels the orders that are not paid in time, and no other', async () => {
  const redis = await RedisServer.start();
  const root = {
    module: class {},
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ url: redis.url, namespace: 'shop:deadlines', events: { group: 'orders' } }),
    ],
    providers: [Orders, OrderRepository, Mail],
  };
  const app = await NestFactory.createApplicationContext(root, { logger: false });
  try {
    const orders = app.get(Orders);
    for (const id of ['late', 'paid', 'extended']) await orders.place({ id, total: 42 });
    expect(await orders.paid('paid')).toBe('cancelled');
    expect(await orders.extend('extended')).toBe('moved');
    // Its fifteen minutes are over.
    expect(await app.get(Deadlines).reschedule(paymentDue, 'late', { in: 0 })).toBe('moved');
    await eventually(() => expect(app.get(Mail).sent).toEqual(['late: 42']));
    expect([...app.get(OrderRepository).states.values()]).toEqual(['cancelled', 'unpaid', 'unpaid']);
    expect(await orders.paid('late')).toBe('fired');
    expect(await orders.paid('unknown')).toBe('none');
    expect(await orders.extend('late')).toBe('fired');
  } finally {
    await app.close();
    await redis.stop();
  }
});
