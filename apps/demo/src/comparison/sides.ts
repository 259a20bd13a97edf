import { Injectable } from '@nestjs/common';
import { DemoRedis } from '../engine-room/demo.redis.js';
import { Journal } from '../engine-room/journal.js';
import { environment } from '../environment.js';
import { OWN_NAME } from '../http/address.js';
import { keyOf } from '../sides/express-session/redis.connection.js';
import type { EndEntry } from '../sides/side.js';

export const SIDES = ['express-session', 'nest-session'] as const;
export type Side = (typeof SIDES)[number];

/** One of something for each side. */
export type BySide<T> = { readonly [side in Side]: T };

export function bySide<T>(valueOf: (index: number) => T): BySide<T> {
  return { 'express-session': valueOf(0), 'nest-session': valueOf(1) };
}

/** Where the shops of both sides are, and what they tell of the end of a session. */
@Injectable()
export class Sides {
  constructor(
    private readonly redis: DemoRedis,
    private readonly journal: Journal,
  ) {}

  /** `ownPort`: where this instance listens, and all others of the right side. */
  originOf(side: Side, ownPort: number): string {
    return side === 'express-session' ? environment.expressSessionUrl! : `http://${OWN_NAME}:${ownPort}`;
  }

  async endOf(side: Side, sessionId: string): Promise<EndEntry[]> {
    if (side === 'nest-session') return (await this.journal.read(sessionId)) as unknown as EndEntry[];
    const entries = (await this.redis.client?.lrange(keyOf('end', sessionId), 0, -1)) ?? [];
    return entries.map((text) => JSON.parse(text) as EndEntry);
  }
}
