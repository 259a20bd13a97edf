import { Injectable } from '@nestjs/common';
import { beganAt } from '@nest-session/core/internal';
import type { SessionRecord } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';

/** Milliseconds between two reads of an epoch, and between two confirmations if signals would report a change. */
export const EPOCH_INTERVAL = 1000;
// Milliseconds for which a known epoch is trusted.
const LEASE = 2000;

interface Epoch {
  /** Epoch milliseconds. -Infinity if the epoch was never raised. */
  readonly at: number;
  /** The epoch up to which the background work has ended all sessions. */
  readonly endedAt: number;
  /** The monotonic time at which Redis was asked. */
  readonly askedAt: number;
}

/**
 * The epoch of each partition, as this instance knows it. A session that began before its epoch has ended. Either a
 * poll reads the epochs every second, or a subscription to them is confirmed as often, so loads do not have to read
 * them.
 */
@Injectable()
export class SessionEpochs {
  readonly #known = new Map<SessionKeys, Epoch>();
  /** Called when an epoch was raised. */
  onRaise: (() => void) | undefined;

  /** Reads the epoch of a partition. */
  async ask(client: Redis, keys: SessionKeys): Promise<void> {
    const askedAt = performance.now();
    const [at, endedAt] = await client.hmget(keys.epoch, 'at', 'ended');
    // Replies on two connections may arrive in another order than the requests.
    const known = this.#known.get(keys);
    if ((known?.askedAt ?? 0) > askedAt) return;
    const epoch = { at: Number(at ?? -Infinity), endedAt: Number(endedAt ?? -Infinity), askedAt };
    this.#known.set(keys, epoch);
    if (known && epoch.at > known.at) this.onRaise?.();
  }

  /** Confirms that the known epoch of a partition was still current at a monotonic time. */
  confirm(keys: SessionKeys, at: number): void {
    const known = this.#known.get(keys);
    if (known && known.askedAt < at) this.#known.set(keys, { ...known, askedAt: at });
  }

  /** Whether a load has to read the epoch of its partition. */
  isStale(keys: SessionKeys): boolean {
    const known = this.#known.get(keys);
    return known === undefined || performance.now() - known.askedAt > LEASE;
  }

  /** Whether a session has ended by the epoch of its partition. */
  ends(keys: SessionKeys, session: Pick<SessionRecord, 'creationTime' | 'authenticatedAt'>): boolean {
    const at = this.#known.get(keys)?.at;
    return at !== undefined && beganAt(session) <= at;
  }

  /** The epoch of a partition that still has sessions to end; undefined if there are none. */
  pending(keys: SessionKeys): number | undefined {
    const known = this.#known.get(keys);
    return known && known.endedAt < known.at ? known.at : undefined;
  }
}
