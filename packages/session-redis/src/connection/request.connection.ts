import { setImmediate as nextTurn } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from './redis-connections.js';

/**
 * Runs the commands of requests. A call takes at most the command timeout, the wait for a connection that is being made
 * again included, and fails with a SessionStoreError. A command that was sent and not answered in time may still take
 * effect, but is never sent a second time.
 */
@Injectable()
export class RequestConnection {
  readonly #commandTimeout: number;
  #reconnected: Promise<void> | undefined;
  /** What fails the commands that have been sent and not been answered. */
  readonly #unanswered = new Set<(error: SessionStoreError) => void>();

  constructor(
    @InjectConnection('request') private readonly client: Redis,
    @Inject(REDIS_SESSION_OPTIONS) { commandTimeout }: Pick<ResolvedRedisSessionOptions, 'commandTimeout'>,
  ) {
    this.#commandTimeout = commandTimeout;
    // ioredis, told not to send them again, never answers them at all.
    client.on('close', () => {
      for (const fail of this.#unanswered) fail(new SessionStoreError('The connection was lost before Redis answered'));
    });
  }

  async run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    const over = new AbortController();
    let fail!: (error: SessionStoreError) => void;
    const failed = new Promise<never>((_, reject) => (fail = reject));
    const giveUp = () => fail(new SessionStoreError(`Redis did not answer within ${this.#commandTimeout} ms`));
    // Timers come before what has arrived is read: after the process has stood still, the answer may be there.
    const timer = setTimeout(() => setImmediate(giveUp), this.#commandTimeout);
    try {
      return await Promise.race([this.#send(command, over.signal, fail), failed]);
    } catch (error) {
      throw error instanceof SessionStoreError ? error : storeError(error);
    } finally {
      clearTimeout(timer);
      over.abort();
      this.#unanswered.delete(fail);
    }
  }

  async #send<T>(
    command: (client: Redis) => Promise<T>,
    over: AbortSignal,
    fail: (error: SessionStoreError) => void,
  ): Promise<T> {
    for (;;) {
      if (this.client.status !== 'ready') await this.#untilReady();
      // The caller has been told that it failed: sending it now would be a write nobody knows of.
      over.throwIfAborted();
      this.#unanswered.add(fail);
      try {
        return await command(this.client);
      } catch (error) {
        if (!wasNotSent(error)) throw error;
        this.#unanswered.delete(fail);
        await nextTurn();
      }
    }
  }

  /** One wait for all the requests that a lost connection holds up. */
  async #untilReady(): Promise<void> {
    if (this.client.status === 'end') throw closed();
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    this.#reconnected ??= this.#nextReady().finally(() => (this.#reconnected = undefined));
    await this.#reconnected;
  }

  #nextReady(): Promise<void> {
    const { client } = this;
    // Not events.once(): it gives up at the error of the first failed attempt to connect.
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

function closed(): SessionStoreError {
  return new SessionStoreError('The connection to Redis has been closed');
}

/** Between the loss of a connection and the event that says so: nothing was written, so it can still be sent. */
function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Stream isn't writeable");
}

function storeError(error: unknown): SessionStoreError {
  // ioredis attaches the command with its arguments, and so with the values of attributes.
  if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'command');
  return new SessionStoreError(`Redis failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
