import { setImmediate } from 'node:timers';
import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { adviceFor } from '../logging/advice.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import type { Partitions } from '../partitions/partitions.js';
import { WaitingCalls } from './waiting-calls.js';
import { CONNECTION_OPTIONS, type ConnectionOptions, InjectConnection } from './redis-connections.js';
import type { Redirection, RequestNodes } from './redis-nodes.js';
import { ReplicatedWrites } from './replicated-writes.js';
import { duringSlotMigration } from './slot-migration.js';
import { WriteBatch } from './write-batch.js';

/** Sends the commands of a call. Commands that wait for a reply of others are sent after `proceed()`. */
export type RedisCommand<T> = (client: Redis, proceed: () => void) => Promise<T>;

interface Call {
  readonly nodes: RequestNodes;
  readonly writes: boolean;
  readonly command: RedisCommand<unknown>;
  readonly key: string | undefined;
  readonly resolve: (value: never) => void;
  readonly reject: (error: SessionStoreError) => void;
  /** The connection on which a command of it may have been sent. */
  sentOn: Redis | undefined;
}

// Milliseconds between two attempts while the keys of a slot move.
const UNTIL_MOVED = 20;

type RequestRules = Pick<ConnectionOptions, 'commandTimeout'> & Partial<Pick<ConnectionOptions, 'replicas'>>;

/**
 * Runs the commands of requests. A call takes at most the command timeout, a reconnection included, then fails with a
 * SessionStoreError. A command whose reply is missing may still take effect, but is never sent a second time. What a
 * turn of the event loop sends to a node leaves in one write, and many commands in a few.
 */
@Injectable()
export class RequestConnection {
  readonly #commandTimeout: number;
  readonly #calls: WaitingCalls<Call>;
  readonly #batches = new WeakMap<Redis, WriteBatch>();
  /** Of connections on which writes wait for replicas. */
  readonly #replicated = new WeakMap<Redis, ReplicatedWrites>();

  constructor(
    @InjectConnection('request') private readonly nodes: RequestNodes,
    @Inject(CONNECTION_OPTIONS) { commandTimeout, replicas = 0 }: RequestRules,
    @InjectConnection('writes') private readonly writers: RequestNodes = nodes,
  ) {
    this.#commandTimeout = commandTimeout;
    this.#calls = new WaitingCalls(commandTimeout, (call) => this.#giveUp(call));
    for (const each of new Set([nodes, writers])) {
      each.onOpen((client) => {
        this.#batches.set(client, WriteBatch.on(client));
        // Without re-sending, ioredis never settles the commands that had no reply when the connection closed.
        client.on('close', () => this.#failSentOn(client));
      });
    }
    if (replicas === 0) return;
    // The other half is for writes that come while Redis waits for replicas.
    const timeout = Math.ceil(commandTimeout / 2);
    writers.onOpen((client) => this.#replicated.set(client, new ReplicatedWrites(client, replicas, timeout)));
  }

  /**
   * Runs commands on the node that has a key. All their keys are in its slot; several commands must be such that they
   * can all be sent once more when the node has executed only the first ones, because its keys are moving to another
   * one. Without `key`, any node.
   */
  run<T>(command: RedisCommand<T>, key?: string): Promise<T> {
    return this.#begin(this.nodes, false, command, key);
  }

  /**
   * Runs commands that write, as `run()` does. Resolves when as many replicas as the option `replicas` says have what
   * they wrote; the node has executed them before, also when that fails. While the keys of the slot move to another
   * node, it waits: a script would make keys there that it derives, and that have not moved yet.
   */
  write<T>(command: RedisCommand<T>, key: string, { awaitsReplicas = true } = {}): Promise<T> {
    return this.#begin(awaitsReplicas ? this.writers : this.nodes, true, command, key);
  }

  /**
   * Runs a command on the keys of each partition, in one round trip. Returns the replies in the order of the
   * partitions.
   */
  runInAll<T, Keys extends PartitionKeys>(
    { all }: Pick<Partitions<Keys>, 'all'>,
    ask: (client: Redis, keys: Keys) => Promise<T>,
  ): Promise<T[]> {
    return Promise.all(all.map((keys) => this.run((client) => ask(client, keys), keys.prefix)));
  }

  /** Runs a command that writes keys of each partition, as `runInAll()` does. */
  writeInAll<T, Keys extends PartitionKeys>(
    { all }: Pick<Partitions<Keys>, 'all'>,
    write: (client: Redis, keys: Keys) => Promise<T>,
  ): Promise<T[]> {
    return Promise.all(all.map((keys) => this.write((client) => write(client, keys), keys.prefix)));
  }

  #begin<T>(nodes: RequestNodes, writes: boolean, command: RedisCommand<T>, key: string | undefined): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call: Call = { nodes, writes, command, key, resolve, reject, sentOn: undefined };
      this.#calls.add(call);
      this.#send(call);
    });
  }

  #send(call: Call): void {
    // The caller already has an error, so a write now would surprise it.
    if (!this.#calls.has(call)) return;
    const node = call.nodes.of(call.key);
    const turn = node && this.#replicated.get(node)?.turn;
    if (node?.status === 'ready' && !turn) return this.#sendOn(node, call);
    const again = () => this.#send(call);
    if (turn) return void turn.then(again, again);
    call.nodes.changed().then(again, (error: SessionStoreError) => this.#fail(call, error));
  }

  /** `client`: that of the node, or one that stands for it. */
  #sendOn(node: Redis, call: Call, client = this.#clientOf(node)): void {
    call.sentOn = node;
    let reply: Promise<unknown>;
    try {
      reply = call.command(client, () => this.#proceed(call));
    } catch (error) {
      return this.#fail(call, storeError(error));
    }
    reply.then(
      (value) => {
        if (this.#calls.delete(call)) call.resolve(value as never);
      },
      (error: unknown) => {
        if (wasNotSent(error)) return this.#sendLater(node, call, { pause: 0 });
        const redirection = call.nodes.redirection(error, node);
        if (redirection) this.#sendLater(node, call, redirection);
        else this.#fail(call, storeError(error));
      },
    );
  }

  /** The node has not executed the command whose reply this follows. */
  #sendLater(node: Redis, call: Call, { pause, target }: Redirection): void {
    call.sentOn = undefined;
    const isOpen = () => this.#calls.has(call);
    const send = () => {
      if (target?.status !== 'ready') this.#send(call);
      else if (call.writes) setTimeout(() => this.#send(call), UNTIL_MOVED);
      else if (isOpen()) this.#sendOn(node, call, this.#duringSlotMigration(node, target, isOpen));
    };
    if (pause === 0) setImmediate(send);
    else setTimeout(send, pause);
  }

  #duringSlotMigration(from: Redis, to: Redis, isOpen: () => boolean): Redis {
    return duringSlotMigration(this.#clientOf(from), this.#clientOf(to), isOpen);
  }

  /** The client that commands of calls get, where writes wait for replicas. */
  #clientOf(node: Redis): Redis {
    return this.#replicated.get(node)?.client ?? node;
  }

  #proceed(call: Call): void {
    if (!this.#calls.has(call)) throw new SessionStoreError('The call has failed');
  }

  #failSentOn(client: Redis): void {
    for (const call of this.#calls.calls) {
      if (call.sentOn === client) {
        this.#fail(call, new SessionStoreError('The connection was lost before Redis replied'));
      }
    }
  }

  #fail(call: Call, error: SessionStoreError): void {
    if (this.#calls.delete(call)) call.reject(error);
  }

  #giveUp(call: Call): void {
    // A call that has failed writes nothing later.
    if (call.sentOn) this.#batches.get(call.sentOn)?.flush();
    call.reject(new SessionStoreError(`Redis did not reply within ${this.#commandTimeout} ms`));
  }
}

/**
 * ioredis fails so between the loss of a connection and its `close` event. It has written nothing, so send it again.
 */
function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Stream isn't writeable");
}

/** What the application gets for an error of ioredis, with what to do about it. */
export function storeError(error: unknown): SessionStoreError {
  if (error instanceof SessionStoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SessionStoreError(`Redis failed: ${message}${adviceFor(error)}`, { cause: error });
}
