import type { Socket } from 'node:net';
import { TcpDirection } from './tcp-direction.js';

/** `request`: from the client to the server; `reply`: back. */
export type Direction = 'request' | 'reply';

/** The questions of a connection to its proxy. */
export interface ConnectionRules {
  /** Milliseconds by which data of this direction are delayed. */
  delay(direction: Direction): number;
  isHeld(direction: Direction, connection: TcpConnection): boolean;
  /** Data have arrived at the proxy. */
  arrived(direction: Direction, data: Buffer, connection: TcpConnection): void;
}

/** The data that a client sends before it receives the next data. */
class Burst {
  /** Whether it was counted as a flight. */
  isCounted = false;
  #data: Buffer = Buffer.alloc(0);

  get data(): Buffer {
    return this.#data;
  }

  add(data: Buffer): void {
    this.#data = Buffer.concat([this.#data, data]);
  }
}

/** A client's connection through the proxy. */
export class TcpConnection {
  /** Resolves when both sides are closed. */
  readonly closed: Promise<void>;
  /** The data that the client has sent since it last received data. */
  burst = new Burst();
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #directions: Readonly<Record<Direction, TcpDirection>>;
  #isReplied = false;
  #dropReply: (() => void) | undefined;

  constructor(client: Socket, upstream: Socket, rules: ConnectionRules) {
    this.#client = client;
    this.#upstream = upstream;
    for (const socket of [client, upstream]) socket.on('error', () => {}); // 'close' follows
    this.closed = Promise.all([closing(client), closing(upstream)]).then(() => {});
    this.#directions = {
      request: new TcpDirection(client, upstream, {
        delay: () => rules.delay('request'),
        isHeld: () => rules.isHeld('request', this),
        arrived: (data) => {
          this.#beginBurst(rules);
          this.burst.add(data);
          rules.arrived('request', data, this);
        },
        passed: () => {},
      }),
      reply: new TcpDirection(upstream, client, {
        delay: () => rules.delay('reply'),
        isHeld: () => rules.isHeld('reply', this),
        arrived: (data) => {
          rules.arrived('reply', data, this);
          if (this.#dropReply) this.#closeInsteadOfReplying(this.#dropReply);
        },
        passed: () => {
          this.#isReplied = true;
        },
      }),
    };
  }

  heldBytes(direction: Direction): number {
    return this.#directions[direction].heldBytes;
  }

  /** Passes on the data that the rules allow by now. */
  flush(direction: Direction): void {
    this.#directions[direction].flush();
  }

  /** Loses everything from now on, while both sides stay open. */
  swallow(): void {
    this.#directions.request.swallow();
    this.#directions.reply.swallow();
  }

  /** Closes the connection when the next data come from the server. Calls back when the server has closed it too. */
  dropReply(dropped: () => void): void {
    this.#dropReply = dropped;
  }

  destroy(): void {
    this.swallow();
    this.#client.destroy();
    this.#upstream.destroy();
  }

  /** What follows the reply is a new burst, unless it stands behind data that are held: it must not set them free. */
  #beginBurst(rules: ConnectionRules): void {
    if (!this.#isReplied || (this.heldBytes('request') > 0 && rules.isHeld('request', this))) return;
    this.#isReplied = false;
    this.burst = new Burst();
  }

  #closeInsteadOfReplying(dropped: () => void): void {
    this.#dropReply = undefined;
    this.#directions.reply.swallow();
    this.#client.destroy();
    // Not destroyed: of several requests that were sent at once, the server must get to read and execute the last.
    this.#upstream.once('close', dropped);
    this.#upstream.end();
  }
}

function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
