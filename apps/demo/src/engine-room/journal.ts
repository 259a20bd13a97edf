import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { concatMap, distinct, filter, from, type Observable, startWith, Subject } from 'rxjs';
import { environment } from '../environment.js';
import { DemoRedis } from './demo.redis.js';

/** Something that happened to a session, with what the page shows of it. */
export interface JournalEntry {
  /** The same when it is written again, by which the page shows it once. */
  readonly id: string;
  readonly type: string;
  readonly at: number;
  readonly instance: string;
  readonly [detail: string]: unknown;
}

const CHANNEL = 'demo:journal';
const REMEMBERED = 200;
const SECONDS_KEPT = 3600;

/** What happened to each session, for its page. It lies in Redis, so that one instance shows what another one did. */
@Injectable()
export class Journal implements BeforeApplicationShutdown {
  readonly #written = new Subject<string>();
  #inMemory: { readonly sessionId: string; readonly entry: JournalEntry }[] = [];

  constructor(private readonly redis: DemoRedis) {
    redis.subscriber?.on('message', (_, sessionId) => this.#written.next(sessionId));
    redis.subscriber?.subscribe(CHANNEL).catch(() => undefined);
  }

  async write(sessionId: string, details: Partial<JournalEntry> & { readonly type: string }): Promise<void> {
    const entry = { id: randomUUID(), at: Date.now(), instance: environment.instance, ...details };
    const [client, key] = [this.redis.client, `${CHANNEL}:${sessionId}`];
    if (client) {
      const text = JSON.stringify(entry);
      const kept = client.multi().xadd(key, 'MAXLEN', REMEMBERED, '*', 'entry', text).expire(key, SECONDS_KEPT);
      await kept.publish(CHANNEL, sessionId).exec();
    } else {
      this.#inMemory = [...this.#inMemory, { sessionId, entry }].slice(-REMEMBERED);
      this.#written.next(sessionId);
    }
  }

  /** The entries of a session, those before its sign-in included: the ones it has, and all that follow. */
  of(sessionId: string): Observable<JournalEntry> {
    return this.#written.pipe(
      filter((id) => id === sessionId),
      startWith(sessionId),
      concatMap(() => from(this.#history(sessionId)).pipe(concatMap((entries) => entries))),
      distinct(({ id }) => id),
    );
  }

  /** Ends the event streams, which would keep the server from closing. */
  beforeApplicationShutdown(): void {
    this.#written.complete();
  }

  /**
   * Goes back from the present id, never forward: a client that only knows an id from before the sign-in does not see
   * what the session has become.
   */
  async #history(sessionId: string): Promise<JournalEntry[]> {
    const own = await this.#read(sessionId);
    const before = own.find(({ type }) => type === 'id-changed')?.['previousSessionId'];
    return typeof before === 'string' ? [...(await this.#history(before)), ...own] : own;
  }

  async #read(sessionId: string): Promise<JournalEntry[]> {
    const { client } = this.redis;
    if (!client) return this.#inMemory.flatMap((each) => (each.sessionId === sessionId ? [each.entry] : []));
    const entries = await client.xrange(`${CHANNEL}:${sessionId}`, '-', '+');
    return entries.map(([, [, text = '{}']]) => JSON.parse(text) as JournalEntry);
  }
}
