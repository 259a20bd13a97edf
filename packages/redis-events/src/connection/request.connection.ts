import { setImmediate } from 'node:timers';
import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { adviceFor } from '../logging/advice.js';
import type { PartitionKeys, Partitions } from '../partitions/partitions.js';
import { CONNECTION_OPTIONS, type ConnectionOptions, InjectConnection } from './redis-connections.js';
import { type Deferred, deferred, type Redirection, type RequestNodes } from './redis-nodes.js';
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

/** Runs the commands of requests, within the command timeout, never twice. Without a reply, they may take effect. */
@Injectable()
export class RequestConnection {
  readonly #calls: WaitingCalls<Call>;
  readonly #batches = new WeakMap<Redis, WriteBatch>();
  readonly #replicated = new WeakMap<Redis, ReplicatedWrites>();

  constructor(
    @InjectConnection('request') private readonly nodes: RequestNodes,
    @Inject(CONNECTION_OPTIONS) { commandTimeout, replicas = 0 }: RequestRules,
    @InjectConnection('writes') private readonly writers: RequestNodes = nodes,
  ) {
    this.#calls = new WaitingCalls(commandTimeout, (call) => {
      // A call that has failed writes nothing later.
      if (call.sentOn) this.#batches.get(call.sentOn)?.flush();
      call.reject(new SessionStoreError(`Redis did not reply within ${commandTimeout} ms`));
    });
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

  /** On the node that has a key, or on any. While keys move to another node, several commands may all be sent again. */
  run<T>(command: RedisCommand<T>, key?: string): Promise<T> {
    return this.#begin(this.nodes, false, command, key);
  }

  /**
   * The same for commands that write. Resolves when as many replicas have it as `replicas` says. While the keys of the
   * slot move, it waits: a script would make keys that it derives.
   */
  write<T>(command: RedisCommand<T>, key: string, { awaitsReplicas = true } = {}): Promise<T> {
    return this.#begin(awaitsReplicas ? this.writers : this.nodes, true, command, key);
  }

  runInAll<T, Keys extends PartitionKeys>(
    { all }: Pick<Partitions<Keys>, 'all'>,
    ask: (client: Redis, keys: Keys) => Promise<T>,
  ): Promise<T[]> {
    return Promise.all(all.map((keys) => this.run((client) => ask(client, keys), keys.prefix)));
  }

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
      reply = call.command(client, () => {
        if (!this.#calls.has(call)) throw new SessionStoreError('The call has failed');
      });
    } catch (error) {
      return this.#fail(call, storeError(error));
    }
    reply.then(
      (value) => {
        if (this.#calls.delete(call)) call.resolve(value as never);
      },
      (error: unknown) => {
        // ioredis fails so between the loss of a connection and its `close` event. It has written nothing.
        const wasNotSent = error instanceof Error && error.message.startsWith("Stream isn't writeable");
        if (wasNotSent) return this.#sendLater(node, call, { pause: 0 });
        const redirection = call.nodes.redirection(error, node);
        if (redirection) this.#sendLater(node, call, redirection);
        else this.#fail(call, storeError(error));
      },
    );
  }

  #sendLater(node: Redis, call: Call, { pause, target }: Redirection): void {
    call.sentOn = undefined;
    const isOpen = () => this.#calls.has(call);
    const send = () => {
      if (target?.status !== 'ready') this.#send(call);
      else if (call.writes) setTimeout(() => this.#send(call), UNTIL_MOVED);
      else if (isOpen())
        this.#sendOn(node, call, duringSlotMigration(this.#clientOf(node), this.#clientOf(target), isOpen));
    };
    if (pause === 0) setImmediate(send);
    else setTimeout(send, pause);
  }

  #clientOf(node: Redis): Redis {
    return this.#replicated.get(node)?.client ?? node;
  }

  #failSentOn(client: Redis): void {
    const lost = [...this.#calls.calls].filter(({ sentOn }) => sentOn === client);
    for (const call of lost) this.#fail(call, connectionLost());
  }

  #fail(call: Call, error: SessionStoreError): void {
    if (this.#calls.delete(call)) call.reject(error);
  }
}

function connectionLost(): SessionStoreError {
  return new SessionStoreError('The connection was lost before Redis replied');
}

/** What the application gets for an error of ioredis, with what to do about it. */
export function storeError(error: unknown): SessionStoreError {
  if (error instanceof SessionStoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SessionStoreError(`Redis failed: ${message}${adviceFor(error)}`, { cause: error });
}

/** The turn of the event loop in which calls began. */
interface Turn {
  /** When the time of its calls passes, in ms of the monotonic clock. The turn still runs while it is Infinity. */
  ends: number;
}

/** The calls that wait for Redis, in order, with one timer. Their time begins when their turn of the loop ends. */
export class WaitingCalls<Call extends object> {
  readonly #turns = new Map<Call, Turn>();
  #turn: Turn | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly timeout: number,
    private readonly expire: (call: Call) => void,
  ) {}

  /** The calls that are not settled, the oldest first. */
  get calls(): Iterable<Call> {
    return this.#turns.keys();
  }

  add(call: Call): void {
    this.#turns.set(call, (this.#turn ??= this.#begin()));
  }

  has(call: Call): boolean {
    return this.#turns.has(call);
  }

  delete(call: Call): boolean {
    const isOpen = this.#turns.delete(call);
    if (this.#turns.size === 0) this.#stop();
    return isOpen;
  }

  #begin(): Turn {
    const turn = { ends: Infinity };
    setImmediate(() => {
      turn.ends = performance.now() + this.timeout;
      this.#turn = undefined;
      this.#start();
    });
    return turn;
  }

  #start(): void {
    const [oldest] = this.#turns.values();
    // When its turn ends, the timer starts.
    if (this.#timer !== undefined || oldest === undefined || oldest.ends === Infinity) return;
    this.#timer = setTimeout(
      () => {
        const now = performance.now();
        // Node.js runs timers before it reads sockets: after a long pause of the process, replies may have arrived.
        setImmediate(() => this.#expireUntil(now));
      },
      // It may have passed while other calls were told that theirs has.
      Math.max(0, Math.ceil(oldest.ends - performance.now())),
    );
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #expireUntil(now: number): void {
    this.#stop();
    for (const [call, { ends }] of this.#turns) {
      if (ends > now) break;
      this.#turns.delete(call);
      this.expire(call);
    }
    this.#start();
  }
}

/**
 * Lets writes succeed only when enough replicas have them. One WAIT asks for all that a turn has written: Redis
 * executes nothing else of the connection meanwhile, so further writes gather.
 */
export class ReplicatedWrites {
  readonly client: Redis;
  /** What leaves at the end of this turn. */
  #open: Deferred | undefined;
  /** What left last, while replicas are waited for. */
  #sent: Deferred | undefined;

  constructor(
    connection: Redis,
    private readonly replicas: number,
    private readonly timeout: number,
  ) {
    const send: Redis['sendCommand'] = (command, stream) => {
      const { promise } = (this.#open ??= this.#begin(connection));
      const { resolve } = command;
      command.resolve = (reply) =>
        void promise.then(
          () => resolve(reply),
          (error: Error) => command.reject(error),
        );
      return connection.sendCommand(command, stream);
    };
    this.client = Object.create(connection, { sendCommand: { value: send } }) as Redis;
    // ioredis never settles a WAIT without a reply.
    connection.on('close', () => {
      for (const batch of [this.#open, this.#sent]) batch?.reject(connectionLost());
      this.#open = this.#sent = undefined;
    });
  }

  /** Settles when Redis may execute further writes; undefined: it may do so now. */
  get turn(): Promise<void> | undefined {
    return this.#sent?.promise;
  }

  #begin(connection: Redis): Deferred {
    const batch = deferred();
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

  async #wait(connection: Redis, batch: Deferred): Promise<void> {
    const { replicas, timeout } = this;
    const few = (count: number) =>
      new SessionStoreError(`${count} of the ${replicas} replicas in option \`replicas\` replied within ${timeout} ms`);
    try {
      const count = await connection.wait(replicas, timeout);
      if (count >= replicas) batch.resolve();
      else batch.reject(few(count));
    } catch (cause) {
      const reason = `Redis cannot wait for replicas: ${(cause as Error).message}`;
      batch.reject(new SessionStoreError(reason + adviceFor(cause), { cause }));
    } finally {
      if (this.#sent === batch) this.#sent = undefined;
    }
  }
}
