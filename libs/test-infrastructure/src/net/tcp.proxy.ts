import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '@nest-session/testing';
import { type Direction, TcpConnection } from './tcp.connection.js';

/** The server that a proxy leads to. */
export interface TcpTarget {
  /** Its port. */
  readonly port: number;
  /** @default 127.0.0.1 */
  readonly host?: string | undefined;
}

/** Selects bursts: those that contain a text, or for which the function returns true. */
export type BurstMatcher = string | ((burst: Buffer) => boolean);

/**
 * Stands between clients and a server, counts their round trips and causes faults: delayed, held and lost data, cut and
 * refused connections. It starts transparent. The data that a client sends before it receives the next data are a
 * *burst*; a burst that is counted is a *flight*, one round trip.
 */
export class TcpProxy {
  /** The port on 127.0.0.1 that clients connect to. */
  readonly port: number;
  readonly #target: TcpTarget;
  readonly #connections = new Set<TcpConnection>();
  readonly #listeners = new Set<(direction: Direction, data: Buffer) => void>();
  readonly #delays = { request: 0, reply: 0 };
  readonly #holds: Record<Direction, ((burst: Buffer) => boolean) | undefined> = {
    request: undefined,
    reply: undefined,
  };
  readonly #drops: { matches: (burst: Buffer) => boolean; dropped: () => void }[] = [];
  readonly #heldWaiters = new Set<() => void>();
  #server: Server | undefined;
  #flights = 0;
  #counts: (burst: Buffer) => boolean = () => true;
  #isBlackHole = false;
  #longestIdle = Infinity;
  /** When data last arrived: monotonic times. */
  readonly #usedAt = new WeakMap<TcpConnection, number>();

  private constructor(target: TcpTarget, server: Server, port: number) {
    this.#target = target;
    this.port = port;
    this.#serve(server);
  }

  /** Resolves when the proxy accepts connections, on a free port of 127.0.0.1. */
  static async start(target: TcpTarget): Promise<TcpProxy> {
    const server = halfOpenServer();
    return new TcpProxy(target, server, await listenOnFreePort(server));
  }

  /** The address for a client of Redis, such as `redis://127.0.0.1:6379`. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The number of connections that are open on at least one side. */
  get connections(): number {
    return this.#connections.size;
  }

  /** The round trips so far, of all connections. Counted when the request arrives here. */
  get flights(): number {
    return this.#flights;
  }

  /** Resets the count to 0. */
  resetFlights(): void {
    this.#flights = 0;
  }

  /** Resets the count, and counts only matching bursts: with a key prefix, no PING and no XREADGROUP. */
  countFlights(matching?: BurstMatcher): void {
    this.#counts = toMatcher(matching);
    this.resetFlights();
  }

  /** The number of flights from the call of `action` to its end. */
  async flightsDuring(action: () => unknown): Promise<number> {
    const before = this.#flights;
    await action();
    return this.#flights - before;
  }

  /**
   * Calls `listener` with all data that arrive from now on, before they are passed on. Returns a function that ends
   * that.
   */
  onData(direction: Direction, listener: (data: Buffer) => void): () => void {
    const filtered = (arrived: Direction, data: Buffer): void => {
      if (arrived === direction) listener(data);
    };
    this.#listeners.add(filtered);
    return () => void this.#listeners.delete(filtered);
  }

  /** Delays all replies that arrive from now on by this many milliseconds; 0 ends it. */
  delayReplies(milliseconds: number): void {
    this.#delays.reply = milliseconds;
  }

  /** Delays all requests that arrive from now on by this many milliseconds; 0 ends it. */
  delayRequests(milliseconds: number): void {
    this.#delays.request = milliseconds;
  }

  /**
   * Holds the data of this direction until `release()`. With `matching`, it holds only matching bursts, or the replies
   * to them, and the data behind them on the same connection. Requests of a client that gives up meanwhile are passed
   * on at the release, as in a slow network.
   */
  hold(direction: Direction = 'reply', matching?: BurstMatcher): void {
    this.#holds[direction] = toMatcher(matching);
  }

  /** Passes on the held data; without a direction, in both. */
  release(direction?: Direction): void {
    for (const released of direction ? [direction] : (['request', 'reply'] as const)) {
      this.#holds[released] = undefined;
      for (const connection of this.#connections) connection.flush(released);
    }
  }

  /** The number of bytes held in a direction, by default of replies. */
  heldBytes(direction: Direction = 'reply'): number {
    let bytes = 0;
    for (const connection of this.#connections) {
      if (this.#isHeld(direction, connection)) bytes += connection.heldBytes(direction);
    }
    return bytes;
  }

  /** Resolves when at least this many bytes are held. */
  async untilHeld(direction: Direction = 'reply', bytes = 1): Promise<void> {
    while (this.heldBytes(direction) < bytes) {
      await new Promise<void>((resolve) => this.#heldWaiters.add(resolve));
    }
  }

  /**
   * Passes the next (matching) burst to the server, and closes its connection when the reply comes. Resolves when the
   * server has closed its side too: then it has executed everything that the client has sent.
   */
  dropNextReply(matching?: BurstMatcher): Promise<void> {
    return new Promise((dropped) => this.#drops.push({ matches: toMatcher(matching), dropped }));
  }

  /** Closes all connections; new ones are accepted. */
  cut(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  /** Refuses new connections, as a stopped server would; open connections stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Accepts connections again. */
  async accept(): Promise<void> {
    if (this.#server) return;
    const server = halfOpenServer().listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#serve(server);
  }

  /**
   * While on, data and closings vanish silently in both directions, as behind a dead network switch; new connections
   * receive nothing. When turned off, it closes the connections that were open, since their streams have gaps.
   */
  blackHole(on = true): void {
    if (on === this.#isBlackHole) return;
    this.#isBlackHole = on;
    for (const connection of this.#connections) {
      if (on) connection.swallow();
      else connection.destroy();
    }
  }

  /**
   * From now on, forgets each connection on which nothing was sent for so many milliseconds, as load balancers and NAT
   * do: later data vanish silently, in both directions.
   */
  forgetIdle(milliseconds: number): void {
    this.#longestIdle = milliseconds;
  }

  /** Closes everything. Resolves when it is closed; may be called again. */
  async stop(): Promise<void> {
    this.refuse();
    this.cut();
    await Promise.all([...this.#connections].map((connection) => connection.closed));
  }

  #serve(server: Server): void {
    this.#server = server;
    server.on('connection', (client) => this.#connect(client));
  }

  #connect(client: Socket): void {
    const { host = '127.0.0.1', port } = this.#target;
    const upstream = createConnection({ host, port, noDelay: true, allowHalfOpen: true });
    const connection: TcpConnection = new TcpConnection(client, upstream, {
      delay: (direction) => this.#delays[direction],
      isHeld: (direction) => this.#isHeld(direction, connection),
      arrived: (direction, data) => this.#arrived(direction, data, connection),
    });
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
    if (this.#isBlackHole) connection.swallow();
  }

  #isHeld(direction: Direction, connection: TcpConnection): boolean {
    return this.#holds[direction]?.(connection.burst.data) ?? false;
  }

  #arrived(direction: Direction, data: Buffer, connection: TcpConnection): void {
    if (this.#isBlackHole) return;
    const now = performance.now();
    if (now - (this.#usedAt.get(connection) ?? now) > this.#longestIdle) return connection.swallow();
    this.#usedAt.set(connection, now);
    for (const listener of this.#listeners) listener(direction, data);
    if (direction === 'request') this.#inspect(connection);
    // Not now: the data are not yet among those that are held.
    if (this.#holds[direction]) queueMicrotask(() => this.#wakeHeldWaiters());
  }

  #inspect(connection: TcpConnection): void {
    const { burst } = connection;
    if (!burst.isCounted && this.#counts(burst.data)) {
      burst.isCounted = true;
      this.#flights++;
    }
    const drop = this.#drops.find(({ matches }) => matches(burst.data));
    if (!drop) return;
    this.#drops.splice(this.#drops.indexOf(drop), 1);
    connection.dropReply(drop.dropped);
  }

  #wakeHeldWaiters(): void {
    const waiters = [...this.#heldWaiters];
    this.#heldWaiters.clear();
    for (const wake of waiters) wake();
  }
}

/** Resolves to the port. Another process may take a free port before the proxy listens on it. */
async function listenOnFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = await freePort();
    try {
      await once(server.listen(port, '127.0.0.1'), 'listening');
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

function halfOpenServer(): Server {
  return createServer({ noDelay: true, allowHalfOpen: true });
}

function toMatcher(matching: BurstMatcher | undefined): (burst: Buffer) => boolean {
  if (matching === undefined) return () => true;
  return typeof matching === 'string' ? (burst) => burst.includes(matching) : matching;
}
