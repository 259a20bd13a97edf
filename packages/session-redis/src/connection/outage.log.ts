import type { Cluster, Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
import { FailureReasons, shownError } from '@nest-session/core/internal';

type Client = Redis | Cluster;

/**
 * Logs one line when an outage begins, one for each further reason, such as another password, and one when it ends,
 * however many connections notice, and whenever they do.
 */
export class OutageLog {
  /** The connections that were lost or failed, and are not ready again. */
  readonly #broken = new Set<Client>();
  readonly #reasons = new FailureReasons();

  watch(client: Client): void {
    client.on('close', () => this.#broken.add(client));
    // Without a listener ioredis itself logs every failed attempt.
    client.on('error', (error: Error) => {
      if (isUnexpectedReply(error)) return;
      this.#broken.add(client);
      this.#report(reasonOf(error));
    });
    client.on('ready', () => {
      if (this.#mend(client)) logger.log('Redis can be reached again');
    });
    client.on('end', () => void this.#mend(client));
  }

  /** A connection is no longer needed: its node has lost its slots, and others have them. */
  forget(client: Client): void {
    if (this.#mend(client)) logger.log('Redis can be reached again');
  }

  #report(reason: Error): void {
    const lasts = this.#reasons.isKnown;
    if (!this.#reasons.add(reason)) return;
    const line = lasts ? 'Redis still cannot be reached, for another reason' : 'Redis cannot be reached, retrying';
    logger.error(`${line}: ${shownError(reason)}`);
  }

  /** Whether a reported outage has ended with this connection. */
  #mend(client: Client): boolean {
    const ends = this.#broken.delete(client) && this.#broken.size === 0 && this.#reasons.isKnown;
    if (ends) this.#reasons.clear();
    return ends;
  }
}

/** Why a connection failed; that of a Cluster: why the last node that was asked for the slots did. */
export function reasonOf(error: Error & { readonly lastNodeError?: Error }): Error {
  return error.lastNodeError ?? error;
}

/** ioredis 5 reports so that a slot has moved to another node; see PartitionSignals. */
export function isUnexpectedReply({ message }: Error): boolean {
  return message.startsWith('Command queue state error');
}
