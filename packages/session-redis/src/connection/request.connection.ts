import { setImmediate } from 'node:timers';
import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { CallDeadlines } from './call-deadlines.js';
import { InjectConnection } from './redis-connections.js';
import { WriteBatch } from './write-batch.js';

/** Sends the commands of a call. Commands that wait for a reply of others are sent after `proceed()`. */
type Command<T> = (client: Redis, proceed: () => void) => Promise<T>;

interface Call {
  readonly command: Command<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: SessionStoreError) => void;
  /** Whether a command of it may have been sent. */
  isSent: boolean;
}

/**
 * Runs the commands of requests. A call takes at most the command timeout, a reconnection included, then fails with a
 * SessionStoreError. A command whose reply is missing may still take effect, but is never sent a second time. What a turn
 * of the event loop sends leaves in one write.
 */
@Injectable()
export class RequestConnection {
  readonly #commandTimeout: number;
  readonly #calls: CallDeadlines<Call>;
  readonly #writes: WriteBatch;
  #reconnected: Promise<void> | undefined;

  constructor(
    @InjectConnection('request') private readonly client: Redis,
    @Inject(REDIS_SESSION_OPTIONS) { commandTimeout }: Pick<ResolvedRedisSessionOptions, 'commandTimeout'>,
  ) {
    this.#commandTimeout = commandTimeout;
    this.#calls = new CallDeadlines(commandTimeout, (call) => this.#giveUp(call));
    this.#writes = WriteBatch.on(client);
    // Without re-sending, ioredis never settles the commands that had no reply when the connection closed.
    client.on('close', () => {
      for (const call of this.#calls.calls) {
        if (call.isSent) this.#fail(call, new SessionStoreError('The connection was lost before Redis replied'));
      }
    });
  }

  run<T>(command: Command<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call: Call = { command, resolve, reject, isSent: false };
      this.#calls.add(call);
      this.#send(call);
    });
  }

  #send(call: Call): void {
    // The caller already has an error, so a write now would surprise it.
    if (!this.#calls.has(call)) return;
    if (this.client.status !== 'ready') {
      this.#untilReady().then(
        () => this.#send(call),
        (error: SessionStoreError) => this.#fail(call, error),
      );
      return;
    }
    call.isSent = true;
    let reply: Promise<unknown>;
    try {
      reply = call.command(this.client, () => this.#proceed(call));
    } catch (error) {
      return this.#fail(call, storeError(error));
    }
    reply.then(
      (value) => {
        if (this.#calls.delete(call)) call.resolve(value as never);
      },
      (error: unknown) => {
        if (!wasNotSent(error)) return this.#fail(call, storeError(error));
        call.isSent = false;
        setImmediate(() => this.#send(call));
      },
    );
  }

  #proceed(call: Call): void {
    if (!this.#calls.has(call)) throw new SessionStoreError('The call has failed');
  }

  #fail(call: Call, error: SessionStoreError): void {
    if (this.#calls.delete(call)) call.reject(error);
  }

  #giveUp(call: Call): void {
    // A call that has failed writes nothing later.
    this.#writes.flush();
    call.reject(new SessionStoreError(`Redis did not reply within ${this.#commandTimeout} ms`));
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
  if (error instanceof SessionStoreError) return error;
  // ioredis attaches the command with its arguments, which contain values of attributes.
  if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'command');
  return new SessionStoreError(`Redis failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
