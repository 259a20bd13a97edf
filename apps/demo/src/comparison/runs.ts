import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { DemoRedis } from '../engine-room/demo.redis.js';
import type { BySide } from './sides.js';

/** A comparison whose rest shows only in how the sessions ended. */
export interface Run {
  readonly scenario: string;
  /** Epoch milliseconds. */
  readonly begun: number;
  readonly sessionIds: BySide<string>;
}

// Milliseconds.
const LONGEST = 30_000;
const SECONDS_KEPT = 3600;

/** The comparisons that are running. They are in Redis, because each instance may be asked, and one may be killed. */
@Injectable()
export class Runs {
  constructor(private readonly redis: DemoRedis) {}

  async keep(run: Run): Promise<string> {
    const id = randomUUID();
    await this.redis.client?.set(`demo:comparison:${id}`, JSON.stringify(run), 'EX', SECONDS_KEPT);
    return id;
  }

  async find(id: string): Promise<Run> {
    const text = await this.redis.client?.get(`demo:comparison:${id}`);
    if (!text) throw new NotFoundException('There is no such comparison');
    return JSON.parse(text) as Run;
  }

  /** Does the work while no other comparison does: a Redis that fails does so for all. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const isFree = await this.redis.client?.set('demo:comparison', '1', 'PX', LONGEST, 'NX');
    if (!isFree) throw new ConflictException('Someone else compares at this moment: try again in a few seconds');
    try {
      return await work();
    } finally {
      await this.redis.client?.del('demo:comparison');
    }
  }
}
