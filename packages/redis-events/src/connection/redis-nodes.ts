import type { Cluster, Redis } from 'ioredis';
import { SessionStoreError } from '@nest-session/core';
import slotOf from 'cluster-key-slot';
import { closeConnection } from './close-connection.js';

/** Connections for one purpose, one to each node of Redis that has keys. */
export interface RedisNodes {
  /** The connections that are open, or being made. */
  readonly all: Iterable<Redis>;
  /** The connection to the node with a key; to any without a key. Undefined: unknown which one has it. */
  of(key: string | undefined): Redis | undefined;
  /** Begins to connect. Resolves when a first node can be reached. */
  connect(): Promise<void>;
  /** Calls the listener with each connection that is opened, and with those that are open. */
  onOpen(listener: (client: Redis) => void): void;
  onChange(listener: () => void): void;
  refresh(): void;
  close(): Promise<void>;
}

export interface Redirection {
  /** Milliseconds until it is sent again. */
  readonly pause: number;
  /** Where keys of the slot have moved to, while others are still where the reply came from. */
  readonly target?: Redis | undefined;
}

export interface RequestNodes extends RedisNodes {
  /** Resolves when a node can be reached, or other keys are there. Rejects when all was closed. */
  changed(): Promise<void>;
  /** Where an error says that the node has executed nothing, because it has not got the key. */
  redirection(error: unknown, from: Redis): Redirection | undefined;
}

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

  /** The only one always has all keys. */
  onChange(): void {}

  refresh(): void {}

  close(): Promise<void> {
    return closeConnection(this.client);
  }

  #nextReady(): Promise<void> {
    const { client } = this;
    // Not events.once(): it rejects when the first attempt to connect fails.
    return new Promise((resolve, reject) => {
      const settle = () => {
        client.off('ready', settle).off('end', settle);
        if (client.status === 'end') reject(closed());
        else resolve();
      };
      client.on('ready', settle).on('end', settle);
    });
  }
}

function closed(): SessionStoreError {
  return new SessionStoreError('The connection to Redis has been closed');
}

type Address = `${string}:${number}`;

// Milliseconds. A slot whose keys move, or that has no primary at the moment.
const PAUSE = 20;
// The reply to a script that derives a key which has moved before the keys that the call names. It reads each key
// before its first write.
const OF_MOVED_KEY = /^ERR Script attempted to access a non local key/;

/** Connections to the primaries of a Cluster. ioredis' own client would send commands of requests a second time. */
export class ClusterNodes implements RequestNodes {
  readonly #nodes = new Map<Address, Redis>();
  readonly #listeners: ((client: Redis) => void)[] = [];
  /** By slot. */
  #owners: (Address | undefined)[] = [];
  #change: Deferred | undefined;
  #isClosed = false;
  #isWanted = false;
  readonly #changeListeners: (() => void)[] = [];

  /** `known`: the connection of the cluster to the node. `left`: is told of those that lost their slots. */
  constructor(
    private readonly cluster: Cluster,
    private readonly open: (host: string, port: number, known: Redis | undefined) => Redis,
    private readonly left: (client: Redis) => void,
  ) {
    cluster.on('refresh', () => this.#adopt());
  }

  get all(): Iterable<Redis> {
    return this.#nodes.values();
  }

  of(key: string | undefined): Redis | undefined {
    if (key === undefined) return this.#any();
    const owner = this.#owners[slotOf(key)];
    return owner === undefined ? undefined : this.#nodes.get(owner);
  }

  async connect(): Promise<void> {
    this.#want();
    while (this.#any()?.status !== 'ready') await this.changed();
  }

  async changed(): Promise<void> {
    if (this.#isClosed) throw closed();
    this.#want();
    await (this.#change ??= deferred()).promise;
  }

  redirection(error: unknown, from: Redis): Redirection | undefined {
    const message = error instanceof Error ? error.message : '';
    if (OF_MOVED_KEY.test(message)) return { pause: PAUSE };
    const [kind, slot, address] = message.split(' ');
    switch (kind) {
      case 'MOVED':
        return this.#moved(Number(slot), this.#addressIn(address!, from));
      case 'ASK':
        return { pause: 0, target: this.#nodeAt(this.#addressIn(address!, from)) };
      case 'CLUSTERDOWN':
        this.refresh();
        return { pause: PAUSE };
      case 'TRYAGAIN':
        return { pause: PAUSE };
      default:
        return undefined;
    }
  }

  onOpen(listener: (client: Redis) => void): void {
    this.#listeners.push(listener);
    for (const client of this.all) listener(client);
  }

  onChange(listener: () => void): void {
    this.#changeListeners.push(listener);
  }

  refresh(): void {
    if (!this.#isClosed) this.cluster.refreshSlotsCache();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#change?.reject(closed());
    await Promise.all([...this.all].map((client) => closeConnection(client)));
  }

  #any(): Redis | undefined {
    const all = [...this.all];
    return all.find(({ status }) => status === 'ready') ?? all[0];
  }

  #want(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    if (this.cluster.status === 'wait') this.cluster.connect().catch(() => undefined);
    else if (this.cluster.slots.length > 0) this.#adopt();
  }

  #adopt(): void {
    if (this.#isClosed || !this.#isWanted) return;
    const before = this.#owners;
    this.#owners = this.cluster.slots.map((nodes) => nodes[0] as Address | undefined);
    const owners = new Set(this.#owners);
    for (const owner of owners) if (owner !== undefined) this.#nodeAt(owner);
    for (const [address, client] of this.#nodes) {
      if (owners.has(address)) continue;
      this.#nodes.delete(address);
      this.left(client);
      void leave(client);
    }
    this.#notify();
    if (this.#owners.every((owner, slot) => owner === before[slot])) return;
    for (const listener of this.#changeListeners) listener();
  }

  /** A second redirection of a call pauses: two nodes may send it to each other until they agree. */
  #moved(slot: number, owner: Address): Redirection {
    const isNews = this.#owners[slot] !== owner;
    this.#owners[slot] = owner;
    this.#nodeAt(owner);
    this.refresh();
    return { pause: isNews ? 0 : PAUSE };
  }

  #nodeAt(address: Address): Redis {
    const known = this.#nodes.get(address);
    if (known) return known;
    const { host, port } = parts(address);
    const inPool = this.cluster.nodes().find(({ options }) => options.host === host && options.port === port);
    const client = this.open(host, port, inPool);
    this.#nodes.set(address, client);
    for (const listener of this.#listeners) listener(client);
    client.on('ready', () => this.#notify());
    // Another node may have its slots before it returns.
    client.on('close', () => this.refresh()).on('reconnecting', () => this.refresh());
    client.connect().catch(() => undefined);
    return client;
  }

  #notify(): void {
    this.#change?.resolve();
    this.#change = undefined;
  }

  /** As the network of this process has it. A node that does not know its own host leaves that out. */
  #addressIn(text: string, from: Redis): Address {
    const { host, port } = parts(text as Address);
    const address: Address = `${host === '' ? from.options.host! : host}:${port}`;
    const { natMap } = this.cluster.options;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return mapped ? `${mapped.host}:${mapped.port}` : address;
  }
}

function parts(address: Address): { host: string; port: number } {
  const end = address.lastIndexOf(':');
  return { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
}

async function leave(client: Redis): Promise<void> {
  if (client.status === 'ready') await client.quit().catch(() => undefined);
  await closeConnection(client);
}

export interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export function deferred(): Deferred {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((...functions) => ([resolve, reject] = functions));
  // Perhaps nobody waits any more.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
