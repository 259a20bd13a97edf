import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { MILLISECONDS_TO_LIVE, SECONDS_LEFT } from '../side.js';
import { CONNECTION } from './redis.connection.js';
import { tellOfEnd } from './tell-of-end.js';

/** Cancels orders that nobody pays. express-session has no deadlines, so this is a timer, as one begins with. */
@Injectable()
export class UnpaidOrders {
  constructor(@Inject(CONNECTION) private readonly redis: Redis) {}

  place(sessionId: string, items: readonly string[]): void {
    const cancel = () => void tellOfEnd(this.redis, sessionId, { type: 'mail', items }).catch(() => undefined);
    setTimeout(cancel, SECONDS_LEFT * 1000).unref();
    // Only in a demo.
    setTimeout(() => void this.#die(sessionId, items), MILLISECONDS_TO_LIVE);
  }

  async #die(sessionId: string, items: readonly string[]): Promise<void> {
    await tellOfEnd(this.redis, sessionId, { type: 'killed', items });
    process.kill(process.pid, 'SIGKILL');
  }
}
