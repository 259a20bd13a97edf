import { setImmediate as nextTurn } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from './redis-connections.js';

/**
 * Runs the commands of requests. A call takes at most the command timeout, a reconnection included, then fails with a
 * SessionStoreError. A command whose reply is missing may still take effect, but is never sent a second time.
 */
@Injectable()
export class RequestConnection {
  readonly #commandTimeout: number;
  #reconnected: Promise<void> | undefined;
  /** Fails a command that was sent and has no reply yet. */
  readonly #unanswered = new Set<(error: SessionStoreError) => void>();

  constructor(
    @InjectConnection('request') private readonly client: Redis,
    @Inject(REDIS_SESSION_OPTIONS) { commandTimeout }: Pick<ResolvedRedisSessionOptions, 'commandTimeout'>,
  ) {
    this.#commandTimeout = commandTimeout;
    // Without re-sending, ioredis never settles the commands that had no reply when the connection closed.
    client.on('close', () => {
      for (const fail of this.#unanswered) fail(new SessionStoreError('The connection was lost before Redis replied'));
    });
  }

  async run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    const settled = new AbortController();
    let fail!: (error: SessionStoreError) => void;
    const failed = new Promise<never>((_, reject) => (fail = reject));
    const giveUp = () => fail(new SessionStoreError(`Redis did not reply within ${this.#commandTimeout} ms`));
    // Node.js runs timers before it reads sockets: after a long pause of the process, the reply may have arrived.
    const timer = setTimeout(() => setImmediate(giveUp), this.#commandTimeout);
    try {
      return await Promise.race([this.#send(command, settled.signal, fail), failed]);
    } catch (error) {
      throw error instanceof SessionStoreError ? error : storeError(error);
    } finally {
      clearTimeout(timer);
      settled.abort();
      this.#unanswered.delete(fail);
    }
  }

  async #send<T>(
    command: (client: Redis) => Promise<T>,
    settled: AbortSignal,
    fail: (error: SessionStoreError) => void,
  ): Promise<T> {
    for (;;) {
      if (this.client.status !== 'ready') await this.#untilReady();
      // The caller already has an error, so a write now would surprise it.
      settled.throwIfAborted();
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

  /** One wait, shared by all requests during a reconnection. */
  async #untilReady(): Promise<void> {
    if (this.client.status === 'end') throw closed();
    if (this.client.status === 'wait') this.client.connect().catch(() => undefined);
    this.#reconnected ??= this.#nextReady().finally(() => (this.#reconnected = undefined));
    await this.#reconnected;
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

function closed(): SessionStoreError {
  return new SessionStoreError('The connection to Redis has been closed');
}

/**
 * ioredis fails so between the loss of a connection and its `close` event. It has written nothing, so send it again.
 */
function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Stream isn't writeable");
}

function storeError(error: unknown): SessionStoreError {
  // ioredis attaches the command with its arguments, which contain values of attributes.
  if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'command');
  return new SessionStoreError(`Redis failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
