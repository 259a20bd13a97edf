import { setImmediate } from 'node:timers';
import type { Redis } from 'ioredis';

/** Sends the commands of one turn of the event loop in one write, at the end of the turn. */
export class WriteBatch {
  #stream: Redis['stream'] | undefined;
  readonly #flush = () => this.flush();

  /** All commands of this connection leave in batches from now on. */
  static on(client: Redis): WriteBatch {
    const batch = new WriteBatch();
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      batch.#open(client.stream);
      return send(command, stream);
    };
    return batch;
  }

  private constructor() {}

  /** Sends the batch now. */
  flush(): void {
    this.#stream?.uncork();
    this.#stream = undefined;
  }

  /** `stream`: undefined until the client connects. */
  #open(stream: Redis['stream'] | undefined): void {
    if (stream === undefined || stream === this.#stream) return;
    // Those for a connection that was replaced.
    this.flush();
    stream.cork();
    this.#stream = stream;
    // The callbacks of all sockets that are readable in this turn run before.
    setImmediate(this.#flush);
  }
}
