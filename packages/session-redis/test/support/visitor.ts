import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { HttpAgent } from '@nest-session/testing';

/** A client that sends one request and disconnects. */
export class Visitor {
  readonly #leaving = new AbortController();
  readonly #head: Promise<IncomingMessage | Error>;

  constructor(
    agent: HttpAgent,
    readonly kind: string,
    /** The mark that its visit leaves in the session. */
    readonly mark: string,
  ) {
    const head = agent.open('GET', `/${kind}/${mark}`, { signal: this.#leaving.signal });
    this.#head = head.catch((error: Error) => error);
  }

  /** Disconnects before it has received a byte. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    expect(await this.#head).toMatchObject({ name: 'AbortError' });
  }

  /** Disconnects when the first bytes of the body have arrived. */
  async leaveDuringResponse(): Promise<void> {
    const message = await this.#head;
    if (message instanceof Error) throw message;
    expect(message.statusCode).toBe(200);
    await once(message, 'data');
    message.destroy();
  }
}
