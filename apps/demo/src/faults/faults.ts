import { ConflictException, Injectable } from '@nestjs/common';
import type { SessionExpiredEvent } from '@nest-session/core';
import { timer, takeUntil } from 'rxjs';
import { DemoRedis } from '../engine-room/demo.redis.js';
import { Journal } from '../engine-room/journal.js';
import { environment } from '../environment.js';

/** What can go wrong with the end of a session, and with Redis. */
export const FAULTS = ['none', 'unheard', 'killed', 'fails-twice', 'fails-always', 'frozen'] as const;
export type Fault = (typeof FAULTS)[number];

declare module '@nest-session/core' {
  interface SessionAttributes {
    fault: Fault;
  }
}

/** As often the handler is called before its event becomes a dead letter. */
export const ATTEMPTS = 3;
const FROZEN = 5000;
const UNHEARD = 6000;
/** Milliseconds in which nobody else can do the same to the server. */
const PAUSE = 20_000;

@Injectable()
export class Faults {
  constructor(
    private readonly redis: DemoRedis,
    private readonly journal: Journal,
  ) {}

  /** Why a fault is not to be had here; undefined when it is. */
  reason(fault: Fault): string | undefined {
    if (!environment.redisUrl) return 'It needs Redis, and the sessions of this demo are kept in memory.';
    const isOfServer = fault === 'unheard' || fault === 'frozen';
    if (isOfServer && !environment.ownsRedis) return 'Only for a Redis of the demo itself: start it without REDIS_URL.';
    if (fault === 'killed' && environment.instances < 2) return 'It needs two: npm start -- --instances 2';
    return undefined;
  }

  /** Does what concerns the whole server at once; for a moment nobody else can. */
  async begin(fault: Fault): Promise<void> {
    const { client } = this.redis;
    if (!client || !['unheard', 'killed', 'frozen'].includes(fault)) return;
    const isFree = await client.set(`demo:fault:${fault}`, '1', 'PX', PAUSE, 'NX');
    if (!isFree) throw new ConflictException('Somebody has just done that: try again in a few seconds');
    if (fault === 'frozen') await client.client('PAUSE', FROZEN, 'ALL');
    // Again and again: the library sets the flags when it finds them missing, and will once we stop.
    const silence = () => void client.config('SET', 'notify-keyspace-events', '').catch(() => undefined);
    if (fault === 'unheard')
      timer(0, 100)
        .pipe(takeUntil(timer(UNHEARD)))
        .subscribe(silence);
  }

  /** Called by a handler: fails as the visitor of the ended session wanted it to. */
  async strike({ id, sessionId, session, attempt }: SessionExpiredEvent): Promise<void> {
    const fault = session.getAttribute('fault');
    if (!fault || !this.redis.client) return;
    const tell = (type: string) => this.journal.write(sessionId, { type, attempt });
    await tell('attempt');
    if (fault === 'killed' && (await this.redis.client.set(`demo:killed:${id}`, '1', 'EX', 3600, 'NX'))) {
      await tell('killed');
      process.kill(process.pid, 'SIGKILL');
    }
    const isRepaired = (await this.redis.client.exists(`demo:repaired:${sessionId}`)) === 1;
    if ((fault === 'fails-twice' && attempt <= 2) || (fault === 'fails-always' && !isRepaired)) {
      await tell(attempt < ATTEMPTS ? 'failed' : 'dead-letter');
      throw new Error('The mail server of the demo does not work');
    }
  }

  async repair(sessionId: string): Promise<void> {
    await this.redis.client?.set(`demo:repaired:${sessionId}`, '1', 'EX', 3600);
  }
}
