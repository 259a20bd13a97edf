import type { IncomingMessage } from 'node:http';
import { eventually, type HttpAgent } from '@nest-session/testing';
import type { JournalEntry } from '../../src/engine-room/journal.js';

const EVENTS = ['created', 'id-changed', 'signed-in', 'deleted', 'expired'];

/** What the inspector of the demo has read, as far as tests look at it. */
export interface Room {
  readonly a: { readonly key: string; readonly fields: Readonly<Record<string, string>>; readonly timeToLive: number };
  readonly b?: { readonly key: string; readonly member: string };
  readonly c?: { readonly key: string; readonly timeToLive: number };
  readonly indexes: readonly { readonly key: string; readonly member: string }[];
  readonly entries: readonly [string, string[]][];
  readonly deadline?: {
    readonly key: string;
    readonly fields: Readonly<Record<string, string>>;
    readonly due?: { readonly key: string; readonly member: string; readonly at: number };
    readonly entries: readonly [string, string[]][];
  };
  readonly groups: readonly { readonly name: string; readonly lag: number; readonly consumers: readonly unknown[] }[];
}

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

  get text(): string {
    return this.#text;
  }

  get isEnded(): boolean {
    return this.#message.readableEnded;
  }

  /** Whether nothing more arrives, in whatever way it has ended. */
  get isClosed(): boolean {
    return this.#message.closed;
  }

  /** All that happened. */
  get journal(): JournalEntry[] {
    return this.#messages.filter(({ type }) => type !== 'room');
  }

  /** What the library has reported. */
  get entries(): JournalEntry[] {
    return this.journal.filter(({ type }) => EVENTS.includes(type));
  }

  /** What Redis held of the session at the last look. */
  get room(): Room | undefined {
    return this.#messages.findLast(({ type }) => type === 'room')?.['room'] as Room | undefined;
  }

  get #messages(): JournalEntry[] {
    const data = this.#text.matchAll(/^data: (.+)\n/gm);
    return [...data].map(([, json]) => JSON.parse(json!) as JournalEntry);
  }

  /** The event of this type about a session, at once or as soon as it arrives. */
  next(type: JournalEntry['type'], sessionId: string): Promise<JournalEntry> {
    return eventually(() => {
      const found = this.entries.find((entry) => entry.type === type && entry['sessionId'] === sessionId);
      if (!found) throw new Error(`No event ${type} of ${sessionId} among ${JSON.stringify(this.entries)}`);
      return found;
    });
  }

  close(): void {
    this.#message.destroy();
  }
}
