import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { closeConnection } from './close-connection.js';
import type { RequestNodes } from './redis-nodes.js';

/** The connection to the only node that has keys. */
export class SingleNode implements RequestNodes {
  readonly all: readonly Redis[];
  #reconnected: Promise<void> | undefined;

  constructor(private readonly client: Redis) {
    this.all = [client];
  }

  of(): Redis {
    return this.client;
  }

  connect(): Promise<void> {
    const { status } = this.client;
    if (status === 'ready') return Promise.resolve();
    // Another module that shares it may have connected it.
    return status === 'wait' ? this.client.connect() : this.changed();
  }

  /** One wait, shared by all requests during a reconnection. */
  async changed(): Promise<void> {
    if (this.client.status === 'end') throw closed();
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    this.#reconnected ??= this.#nextReady().finally(() => (this.#reconnected = undefined));
    await this.#reconnected;
  }

  redirection(): undefined {
    return undefined;
  }

  onOpen(listener: (client: Redis) => void): void {
    listener(this.client);
  }

  onChange(): void {
    // The only one always has all keys.
  }

  refresh(): void {
    // The same.
  }

  close(): Promise<void> {
    return closeConnection(this.client);
  }

  #nextReady(): Promise<void> {
    const { client } = this;
    // Not events.once(): it rejects when the first attempt to connect fails.
    return new Promise((resolve, reject) => {
      const onReady = () => {
        client.off('end', onEnd);
        resolve();
      };
      const onEnd = () => {
        client.off('ready', onReady);
        reject(closed());
      };
      client.once('ready', onReady).once('end', onEnd);
    });
  }
}

/** The failure of a request after the connections were closed for good. */
export function closed(): SessionStoreError {
  return new SessionStoreError('The connection to Redis has been closed');
}
