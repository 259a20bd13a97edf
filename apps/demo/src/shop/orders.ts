import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable } from '@nestjs/common';
import { type CancelOutcome, type DeadlineEvent, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { Faults } from '../engine-room/faults.js';
import { Journal } from '../engine-room/journal.js';
import { environment } from '../environment.js';
import { type DueOrder, paymentDue } from '../payment-due.js';
import { type Order, OrderTable } from './order.table.js';
import { Outbox } from './outbox.js';

/** Orders are cancelled unless they are paid in time. */
@Injectable()
export class Orders {
  constructor(
    private readonly deadlines: Deadlines,
    private readonly table: OrderTable,
    private readonly outbox: Outbox,
    private readonly journal: Journal,
    private readonly faults: Faults,
  ) {}

  async place(data: DueOrder, seconds: number): Promise<Order> {
    const { sessionId, items } = data;
    const [id, placedAt] = [randomUUID(), Date.now()];
    const order: Order = { id, sessionId, items, placedAt, dueAt: placedAt + seconds * 1000, state: 'unpaid' };
    // First the deadline: one without an order does nothing, and an order without one is never cancelled.
    await this.deadlines.schedule(paymentDue, id, { in: `${seconds}s`, data });
    await this.table.insert(order);
    return this.#tell(order);
  }

  async pay(id: string): Promise<Order & { readonly answer: CancelOutcome | undefined }> {
    const order = await this.table.end(id, { state: 'paid', instance: environment.instance });
    if (order?.state !== 'paid') throw new ConflictException('Too late: the order is cancelled');
    // Only tidiness, so it may fail: the handler would find a paid order, and do nothing.
    const answer = await this.deadlines.cancel(paymentDue, id).catch(() => undefined);
    return this.#tell({ ...order, answer });
  }

  /** The deadline is a wake-up, and the row decides. If it throws, the library calls it again. */
  @OnDeadline(paymentDue)
  async cancel({ id, key, data, at, late, attempt }: DeadlineEvent<typeof paymentDue>): Promise<void> {
    const { sessionId, to, items, fault } = data;
    await this.journal.write(sessionId, { id, type: 'due', at, late, orderId: key });
    const { instance } = environment;
    const order = await this.table.end(key, { state: 'cancelled', instance, cancelledBy: id, late });
    if (order) await this.#tell(order, `${id}-told`);
    // Also when this event is handled once more: its first attempt may have ended before the mail.
    if (order?.cancelledBy !== id) return;
    await this.faults.strike({ id, sessionId, attempt }, fault); // only in a demo
    await this.outbox.send(
      { id, sessionId },
      { to, text: 'Your order was cancelled, because nobody has paid it:', items },
    );
  }

  async #tell<T extends Order>(order: T, id: string = randomUUID()): Promise<T> {
    await this.journal.write(order.sessionId, { id, type: 'order', order });
    return order;
  }
}
