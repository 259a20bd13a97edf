import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { paymentDue } from '../payment-due.js';
import { DemoRedis } from './demo.redis.js';

const NAMESPACE = 'nest:deadlines';
const LATEST_ENTRIES = 200;

/** Reads what Redis holds of the deadline of one order, as docs/evidence/redis-data-model.md names it. */
@Injectable()
export class DeadlineInspector {
  constructor(private readonly redis: DemoRedis) {}

  async look(orderId: string): Promise<object | undefined> {
    const { client } = this.redis;
    if (!client) return undefined;
    const member = createHash('sha256').update(`${paymentDue.name}\n${orderId}`).digest('hex').slice(0, 40);
    const [key, list] = [`${NAMESPACE}:deadlines:${member}`, `${NAMESPACE}:due:${paymentDue.name}`];
    const [fields, dueAt, entries] = await Promise.all([
      client.hgetall(key),
      client.zscore(list, member),
      client.xrevrange(`${NAMESPACE}:events`, '+', '-', 'COUNT', LATEST_ENTRIES),
    ]);
    return {
      key,
      fields,
      due: dueAt === null ? undefined : { key: list, member, at: Number(dueAt) },
      // The stream has the deadlines of all orders.
      entries: entries.filter(([, entry]) => entry.includes(orderId)).toReversed(),
    };
  }
}
