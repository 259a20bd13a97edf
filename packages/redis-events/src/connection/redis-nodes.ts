import type { Redis } from 'ioredis';

/** Connections for one purpose, one to each node of Redis that has keys. */
export interface RedisNodes {
  /** The connections that are open, or being made. */
  readonly all: Iterable<Redis>;
  /**
   * The connection to the node that has a key, to any node without a key. Undefined: it is unknown which one has it.
   */
  of(key: string | undefined): Redis | undefined;
  /** Begins to connect. Resolves when a first node can be reached. */
  connect(): Promise<void>;
  /** Calls the listener with each connection that is opened, and with those that are open. */
  onOpen(listener: (client: Redis) => void): void;
  /** Calls the listener when other nodes than before may have some keys. */
  onChange(listener: () => void): void;
  /** Finds out anew which node has which keys. */
  refresh(): void;
  /** Closes the connections for good. Resolves as closeConnection() does. */
  close(): Promise<void>;
}

/** What a call does after a reply that another node has the keys. */
export interface Redirection {
  /** Milliseconds until it is sent again. */
  readonly pause: number;
  /**
   * Where some keys of the slot already are, while the others are still on the node that replied; undefined: no keys
   * move.
   */
  readonly target?: Redis | undefined;
}

/** The connections for requests. */
export interface RequestNodes extends RedisNodes {
  /**
   * Resolves when a node can be reached, or has become the one that has some key. Rejects when the connections have
   * been closed.
   */
  changed(): Promise<void>;
  /**
   * What an error says of the node that has the key of a call: it has executed nothing. Undefined for any other error.
   */
  redirection(error: unknown, from: Redis): Redirection | undefined;
}
