import type { Redis } from 'ioredis';
import type { EndEntry } from '../sides/side.js';
import type { Visitor } from './visitor.js';

/** What was measured on one side, in one sentence for somebody who has read nothing else. */
export interface Finding {
  /** Whether all went as the visitor may expect, or all but that he waited long, or wrong. */
  readonly verdict: 'good' | 'slow' | 'wrong';
  readonly text: string;
}

/** What both sides go through at the same time. */
export interface Scenario {
  /** Whether it needs a Redis that the demo may stop for a while. */
  readonly needsOwnRedis?: boolean;
  readonly needsInstances?: boolean;
  /** Whether others may run at the same time. */
  readonly isHarmless?: boolean;
  /** Begins what takes long, at the origin of a side, when somebody opens the page. */
  warm?(origin: string): Promise<unknown>;
  prepare(visitor: Visitor): Promise<unknown>;
  /** Makes the Redis of both sides fail, once both are prepared. */
  breakRedis?(redis: Redis): Promise<unknown>;
  /** Resolves to what was found, or to nothing where that shows only later, in how the session ended. */
  act(visitor: Visitor): Promise<Finding | undefined>;
  /**
   * Returns what the end of a session led to, or undefined as long as that is open. `begun` is in epoch milliseconds.
   */
  find?(entries: readonly EndEntry[], begun: number): Finding | undefined;
}

export const good = (text: string): Finding => ({ verdict: 'good', text });
export const slow = (text: string): Finding => ({ verdict: 'slow', text });
export const wrong = (text: string): Finding => ({ verdict: 'wrong', text });

/** Milliseconds as a person reads them. */
export function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
