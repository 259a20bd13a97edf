import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { environment } from '../environment.js';

/** The demo's own connections, beside those of the library. Both are undefined if sessions are kept in memory. */
@Injectable()
export class DemoRedis implements OnApplicationShutdown {
  readonly client = environment.redisUrl ? new Redis(environment.redisUrl) : undefined;
  readonly subscriber = this.client?.duplicate();

  constructor() {
    // Both connect again; the library logs outages.
    for (const each of [this.client, this.subscriber]) each?.on('error', () => undefined);
  }

  onApplicationShutdown(): void {
    this.client?.disconnect();
    this.subscriber?.disconnect();
  }
}
