import { Injectable } from '@nestjs/common';
import { DemoRedis } from '../engine-room/demo.redis.js';

/** An order, as the page shows it. */
export interface Order {
  readonly id: string;
  readonly sessionId: string;
  readonly items: readonly string[];
  /** Epoch milliseconds by the clock of the instance that placed it. */
  readonly placedAt: number;
  readonly dueAt: number;
  readonly state: 'unpaid' | 'paid' | 'cancelled';
  /** The instance that took the payment, or cancelled it. */
  readonly instance?: string;
  /** The id of the deadline that cancelled it. */
  readonly cancelledBy?: string;
  /** How many milliseconds after its time that deadline was found. */
  readonly late?: number;
}

const SECONDS_KEPT = 24 * 60 * 60;

/** The orders of the shop. A real one has a table in its database. */
@Injectable()
export class OrderTable {
  readonly #inMemory = new Map<string, Record<string, string>>();

  constructor(private readonly redis: DemoRedis) {}

  insert(order: Order): Promise<void> {
    return this.#writeOnce(order.id, 'placed', order);
  }

  /** Ends an order in one step, unless it has ended. Returns it as it is then, or undefined if there is none. */
  async end(id: string, end: Partial<Order>): Promise<Order | undefined> {
    await this.#writeOnce(id, 'end', end);
    return this.find(id);
  }

  async find(id: string): Promise<Order | undefined> {
    const row = (await this.redis.client?.hgetall(`demo:order:${id}`)) ?? this.#inMemory.get(id);
    const { placed, end = '{}' } = row ?? {};
    return placed === undefined ? undefined : { ...JSON.parse(placed), ...JSON.parse(end) };
  }

  async #writeOnce(id: string, field: 'placed' | 'end', values: object): Promise<void> {
    const text = JSON.stringify(values);
    const writing = this.redis.client?.multi().hsetnx(`demo:order:${id}`, field, text);
    await writing?.expire(`demo:order:${id}`, SECONDS_KEPT).exec();
    if (!writing) this.#inMemory.set(id, { [field]: text, ...this.#inMemory.get(id) });
  }
}
