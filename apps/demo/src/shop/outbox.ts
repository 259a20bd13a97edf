import { Injectable } from '@nestjs/common';
import { DemoRedis } from '../engine-room/demo.redis.js';
import { Journal } from '../engine-room/journal.js';

const SECONDS_KEPT = 24 * 60 * 60;

export interface Mail {
  readonly to: string;
  readonly text: string;
  readonly items: readonly string[];
}

/** The mails of the shop. A real one would send them, with `event.id` as the idempotency key. */
@Injectable()
export class Outbox {
  constructor(
    private readonly redis: DemoRedis,
    private readonly journal: Journal,
  ) {}

  /** Writes one mail for an event, however often a handler is called with it. */
  async send({ id, sessionId }: { readonly id: string; readonly sessionId: string }, mail: Mail): Promise<void> {
    const key = `demo:outbox:${id}`;
    const reply = await this.redis.client?.set(key, JSON.stringify(mail), 'EX', SECONDS_KEPT, 'NX');
    await this.journal.write(sessionId, { type: 'mail', eventId: id, isRepeated: reply === null, ...mail });
  }
}
