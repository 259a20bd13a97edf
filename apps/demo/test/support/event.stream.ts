import type { IncomingMessage } from 'node:http';
import { eventually, type HttpAgent } from '@nest-session/testing';
import type { FeedEntry } from '../../src/events/event.feed.js';

/** The server-sent events of the demo, as the page receives them. */
export class EventStream {
  readonly #message: IncomingMessage;
  #text = '';

  private constructor(message: IncomingMessage) {
    this.#message = message;
    message.setEncoding('utf8').on('data', (text: string) => (this.#text += text));
  }

  static async open(agent: HttpAgent): Promise<EventStream> {
    return new EventStream(await agent.open('GET', '/events'));
  }

  get headers(): IncomingMessage['headers'] {
    return this.#message.headers;
  }

  get isEnded(): boolean {
    return this.#message.readableEnded;
  }

  /** Whether nothing more arrives, in whatever way it has ended. */
  get isClosed(): boolean {
    return this.#message.closed;
  }

  get entries(): FeedEntry[] {
    const data = this.#text.matchAll(/^data: (.+)\n/gm);
    return [...data].map(([, json]) => JSON.parse(json!) as FeedEntry);
  }

  /** The event of this type about a session, at once or as soon as it arrives. */
  next(type: FeedEntry['type'], sessionId: string): Promise<FeedEntry> {
    return eventually(() => {
      const found = this.entries.find((entry) => entry.type === type && entry.sessionId === sessionId);
      if (!found) throw new Error(`No event ${type} of ${sessionId} among ${JSON.stringify(this.entries)}`);
      return found;
    });
  }

  close(): void {
    this.#message.destroy();
  }
}
