import { Injectable } from '@nestjs/common';
import type { SessionRecord } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';

// Milliseconds. What was learned longer ago is not relied on.
const LEASE = 2000;

interface Epoch {
  /** Epoch milliseconds; -Infinity: it was never raised. */
  readonly at: number;
  /** The epoch up to which the background work has ended all sessions. */
  readonly endedAt: number;
  /** Monotonic time at which Redis was asked. */
  readonly askedAt: number;
}

/**
 * The epoch of each partition, as this instance knows it: a session that began until then is over. A poll asks for them
 * every second, or a subscription to them is confirmed as often, so that a load need not ask.
 */
@Injectable()
export class SessionEpochs {
  readonly #known = new Map<SessionKeys, Epoch>();
  /** Called when an epoch was raised. */
  onRaise: (() => void) | undefined;

  /** Asks for the epoch of a partition. */
  async ask(client: Redis, keys: SessionKeys): Promise<void> {
    const askedAt = performance.now();
    const [at, endedAt] = await client.hmget(keys.epoch, 'at', 'ended');
    // Replies on two connections may come in another order than the questions.
    const known = this.#known.get(keys);
    if ((known?.askedAt ?? 0) > askedAt) return;
    const epoch = { at: Number(at ?? -Infinity), endedAt: Number(endedAt ?? -Infinity), askedAt };
    this.#known.set(keys, epoch);
    if (known && epoch.at > known.at) this.onRaise?.();
  }

  /** What is known of the epoch of a partition was true at a monotonic time. */
  confirm(keys: SessionKeys, at: number): void {
    const known = this.#known.get(keys);
    if (known && known.askedAt < at) this.#known.set(keys, { ...known, askedAt: at });
  }

  /** Whether a load must ask for the epoch of its partition. */
  isStale(keys: SessionKeys): boolean {
    const known = this.#known.get(keys);
    return known === undefined || performance.now() - known.askedAt > LEASE;
  }

  /** Whether the epoch of a partition says that a session is over. */
  ends(
    keys: SessionKeys,
    { creationTime, authenticatedAt = 0 }: Pick<SessionRecord, 'creationTime' | 'authenticatedAt'>,
  ): boolean {
    const at = this.#known.get(keys)?.at;
    return at !== undefined && Math.max(creationTime, authenticatedAt) <= at;
  }

  /** The epoch of a partition whose sessions are not all ended yet; undefined when there is nothing to end. */
  pending(keys: SessionKeys): number | undefined {
    const known = this.#known.get(keys);
    return known && known.endedAt < known.at ? known.at : undefined;
  }
}
