import { setImmediate } from 'node:timers';
import type { Redis } from 'ioredis';

/** Sends what a turn of the event loop writes to a connection in one write, at the end of the turn. */
export class WriteBatch {
  #stream: Redis['stream'] | undefined;
  readonly #flush = () => this.flush();

  constructor(private readonly client: Pick<Redis, 'stream'>) {}

  /** Call it before each command: what is written from now on waits for the end of the turn. */
  open(): void {
    const { stream } = this.client as Partial<Redis>;
    if (stream === undefined || stream === this.#stream) return;
    // The connection was replaced: the batch of the old one ends here.
    this.flush();
    stream.cork();
    this.#stream = stream;
    // The callbacks of all sockets that are readable in this turn run before.
    setImmediate(this.#flush);
  }

  /** Sends the batch now. */
  flush(): void {
    this.#stream?.uncork();
    this.#stream = undefined;
  }
}
