import { once } from 'node:events';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';

/**
 * Runs the commands of requests. A call takes at most the command timeout, the wait for a connection that is being made
 * again included, and fails with a SessionStoreError. A command that was sent and not answered in time may still take
 * effect, but is never sent a second time.
 */
export class RequestConnection {
  #reconnected: Promise<void> | undefined;

  constructor(
    private readonly client: Redis,
    /** Milliseconds. */
    private readonly commandTimeout: number,
  ) {}

  async run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let late = false;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        late = true;
        reject(new SessionStoreError(`Redis did not answer within ${this.commandTimeout} ms`));
      }, this.commandTimeout);
    });
    const send = async (): Promise<T> => {
      if (this.client.status !== 'ready') await this.#untilReady();
      // The caller has been told that it failed: sending it now would be a write nobody knows of.
      return late ? timeout : await command(this.client);
    };
    try {
      return await Promise.race([send(), timeout]);
    } catch (error) {
      throw error instanceof SessionStoreError ? error : storeError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** One wait for all the requests that a lost connection holds up. */
  async #untilReady(): Promise<void> {
    if (this.client.status === 'end') throw new SessionStoreError('The connection to Redis has been closed');
    this.#reconnected ??= this.#nextReady().finally(() => (this.#reconnected = undefined));
    await this.#reconnected;
  }

  async #nextReady(): Promise<void> {
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    const stop = new AbortController();
    const { signal } = stop;
    const ended = once(this.client, 'end', { signal }).then(() => {
      throw new SessionStoreError('The connection to Redis has been closed');
    });
    try {
      // Not events.once() for 'ready': it would reject at the first failed attempt to connect.
      await Promise.race([new Promise<void>((resolve) => this.client.once('ready', resolve)), ended]);
    } finally {
      ended.catch(() => undefined);
      stop.abort();
    }
  }
}

function storeError(error: unknown): SessionStoreError {
  // ioredis attaches the command with its arguments, and so with the values of attributes.
  if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'command');
  return new SessionStoreError(`Redis failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
