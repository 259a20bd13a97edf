import { setImmediate } from 'node:timers';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { adviceFor } from '../logging/advice.js';

interface Batch {
  /** Resolves when enough replicas have what was written. */
  readonly replicated: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: SessionStoreError) => void;
}

/**
 * Lets writes on one connection succeed only when enough replicas have them. One WAIT at the end of a turn of the event
 * loop asks that for all that the turn has written. Redis executes nothing else of the connection until it replies to
 * that, so writes that come meanwhile have to gather: one by one, each would wait for all before it.
 */
export class ReplicatedWrites {
  /** For commands that write: they succeed when enough replicas have what they wrote. */
  readonly client: Redis;
  /** What leaves at the end of this turn. */
  #open: Batch | undefined;
  /** What left last, while replicas are waited for. */
  #sent: Batch | undefined;

  /** `timeout`: milliseconds. */
  constructor(
    connection: Redis,
    private readonly replicas: number,
    private readonly timeout: number,
  ) {
    const send: Redis['sendCommand'] = (command, stream) => {
      const { replicated } = (this.#open ??= this.#begin(connection));
      const { resolve } = command;
      command.resolve = (reply) =>
        void replicated.then(
          () => resolve(reply),
          (error: Error) => command.reject(error),
        );
      return connection.sendCommand(command, stream);
    };
    this.client = Object.create(connection, { sendCommand: { value: send } }) as Redis;
    // ioredis never settles a WAIT without a reply.
    connection.on('close', () => {
      const lost = new SessionStoreError('The connection was lost before Redis replied');
      this.#open?.reject(lost);
      this.#sent?.reject(lost);
      this.#open = this.#sent = undefined;
    });
  }

  /** Settles when Redis may execute further writes; undefined: it may do so now. */
  get turn(): Promise<void> | undefined {
    return this.#sent?.replicated;
  }

  #begin(connection: Redis): Batch {
    const batch = newBatch();
    // Before the end of the turn that WriteBatch waits for, so that WAIT leaves with the commands.
    setImmediate(() => {
      // The connection was lost.
      if (this.#open !== batch) return;
      this.#open = undefined;
      this.#sent = batch;
      void this.#wait(connection, batch);
    });
    return batch;
  }

  async #wait(connection: Redis, batch: Batch): Promise<void> {
    const { replicas, timeout } = this;
    try {
      const count = await connection.wait(replicas, timeout);
      if (this.#sent === batch) this.#sent = undefined;
      if (count >= replicas) return batch.resolve();
      batch.reject(
        new SessionStoreError(
          `${count} of the ${replicas} replicas in option \`replicas\` replied within ${timeout} ms`,
        ),
      );
    } catch (cause) {
      if (this.#sent === batch) this.#sent = undefined;
      const reason = `Redis cannot wait for replicas: ${(cause as Error).message}`;
      batch.reject(new SessionStoreError(reason + adviceFor(cause), { cause }));
    }
  }
}

function newBatch(): Batch {
  let resolve!: () => void;
  let reject!: (error: SessionStoreError) => void;
  const replicated = new Promise<void>((onReplicated, onFailure) => {
    resolve = onReplicated;
    reject = onFailure;
  });
  // Perhaps all commands have failed before.
  replicated.catch(() => undefined);
  return { replicated, resolve, reject };
}
