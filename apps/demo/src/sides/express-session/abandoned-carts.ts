import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { environment } from '../../environment.js';
import { tellOfEnd } from './tell-of-end.js';
import { CONNECTION, keyOf, PREFIX } from './redis.connection.js';

const NOTIFICATIONS = `__keyspace@0__:${PREFIX}`;
const SECONDS_KEPT = 3600;

/**
 * Writes a mail about the cart of a session that expired. express-session tells nobody of an end, so this is what one
 * builds: a copy of the cart that outlives the session, Redis' notification of the end, and a claim, so that one
 * instance writes the mail.
 */
@Injectable()
export class AbandonedCarts implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #subscriber: Redis;

  constructor(@Inject(CONNECTION) private readonly redis: Redis) {
    this.#subscriber = redis.duplicate();
    this.#subscriber.on('error', () => undefined); // it connects again
  }

  async onApplicationBootstrap(): Promise<void> {
    this.#subscriber.on('pmessage', (_pattern: string, channel: string, event: string) => {
      if (event === 'expired') this.#remind(channel.slice(NOTIFICATIONS.length)).catch(() => undefined);
    });
    await this.#subscriber.psubscribe(`${NOTIFICATIONS}*`);
  }

  onApplicationShutdown(): void {
    for (const each of [this.#subscriber, this.redis]) each.disconnect();
  }

  async keep(id: string, items: readonly string[]): Promise<void> {
    await this.redis.set(keyOf('cart', id), JSON.stringify(items), 'EX', SECONDS_KEPT);
  }

  async #remind(id: string): Promise<void> {
    const isOurs = await this.redis.set(keyOf('claimed', id), environment.instance, 'EX', SECONDS_KEPT, 'NX');
    const items = JSON.parse((await this.redis.get(keyOf('cart', id))) ?? '[]') as string[];
    if (!isOurs || items.length === 0) return;
    // Only in a demo: the first one that is about to write the mail is killed, as on the right side.
    if (await this.redis.set(keyOf('killed', id), '1', 'EX', SECONDS_KEPT, 'NX')) {
      await tellOfEnd(this.redis, id, { type: 'killed', items });
      process.kill(process.pid, 'SIGKILL');
    }
    await tellOfEnd(this.redis, id, { type: 'mail', items });
  }
}
