import { ConflictException, Injectable } from '@nestjs/common';
import { takeUntil, timer } from 'rxjs';
import { environment } from '../environment.js';
import { DemoRedis } from './demo.redis.js';
import { Journal } from './journal.js';

/** What can go wrong with the end of a session or of an order, and with Redis. */
export const FAULTS = ['none', 'unheard', 'killed', 'fails-twice', 'fails-always', 'frozen'] as const;
export type Fault = (typeof FAULTS)[number];

/** How often a handler is called before its event becomes a dead letter. */
export const ATTEMPTS = 3;
const FLAGS = 'notify-keyspace-events';
// Milliseconds.
const FROZEN = 5000;
const UNHEARD = 10_000;
const UNTIL_AGAIN = 20_000;
// Seconds.
const SECONDS_KEPT = 3600;

/** An event for which a handler was called. */
interface Occasion {
  readonly id: string;
  readonly sessionId: string;
  readonly attempt: number;
}

/**
 * A fault is an attribute of the visitor's own session. It strikes when that session ends, or when its next order is
 * due, and affects no other visitor.
 */
@Injectable()
export class Faults {
  constructor(
    private readonly redis: DemoRedis,
    private readonly journal: Journal,
  ) {}

  /** Returns why a fault is not available here, or null if it is. */
  reason(fault: Fault): string | null {
    if (!this.redis.client) return 'This needs Redis, but the demo keeps its sessions in memory.';
    const isOfServer = fault === 'unheard' || fault === 'frozen';
    if (isOfServer && !environment.ownsRedis)
      return 'This works only with a Redis of the demo: start the demo without REDIS_URL.';
    return fault === 'killed' && environment.instances < 2
      ? 'This needs two instances: npm start, without --watch and --instances 1'
      : null;
  }

  /** Causes at once a fault that concerns the whole server. It cannot be repeated for some seconds. */
  async begin(fault: Fault): Promise<void> {
    if (!['unheard', 'killed', 'frozen'].includes(fault)) return;
    const isFree = await this.redis.client?.set(`demo:fault:${fault}`, '1', 'PX', UNTIL_AGAIN, 'NX');
    if (!isFree) throw new ConflictException('Someone else has just done that: try again in a few seconds');
    if (fault === 'frozen') await this.redis.client?.client('PAUSE', FROZEN, 'ALL');
    if (fault !== 'unheard') return;
    const announce = (flags: string) => void this.redis.client?.config('SET', FLAGS, flags).catch(() => undefined);
    // Repeat it, because the library sets the flags again when it finds them missing.
    const silence = timer(0, 100).pipe(takeUntil(timer(UNHEARD)));
    silence.subscribe({ next: () => announce(''), complete: () => announce('Kx') });
  }

  /** Called by a handler. It fails as the visitor chose. */
  async strike({ id, sessionId, attempt }: Occasion, fault: Fault | undefined): Promise<void> {
    const { client } = this.redis;
    if (!fault || !client) return;
    const tell = (type: string) => this.journal.write(sessionId, { type, attempt, eventId: id });
    await tell('attempt');
    if (fault === 'killed' && (await client.set(`demo:killed:${id}`, '1', 'EX', SECONDS_KEPT, 'NX'))) {
      await tell('killed');
      process.kill(process.pid, 'SIGKILL');
    }
    const isBroken = fault === 'fails-always' && !(await client.exists(`demo:repaired:${id}`));
    if (isBroken || (fault === 'fails-twice' && attempt <= 2)) {
      await tell(attempt < ATTEMPTS ? 'failed' : 'dead-letter');
      throw new Error('The mail server of the demo does not work');
    }
  }

  async repair(eventId: string): Promise<void> {
    await this.redis.client?.set(`demo:repaired:${eventId}`, '1', 'EX', SECONDS_KEPT);
  }
}
