import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionIdChangedEvent } from '@nest-session/core';
import { concatMap, distinct, filter, type Observable, startWith, Subject } from 'rxjs';
import { environment } from '../environment.js';
import { DemoRedis } from './demo.redis.js';
import { answeredRequests } from './request-costs.js';

/** Something that happened to a session, with what the page shows of it. */
export type JournalEntry = Readonly<Record<string, unknown>> & {
  /** Identifies the entry. An entry that is written again has the same id, so the page shows it once. */
  readonly id: string;
  readonly type: string;
};

const CHANNEL = 'demo:journal';
const REMEMBERED = 200;
const SECONDS_KEPT = 3600;

/** Records what happened to each session. It is in Redis, so that each instance can show what another one did. */
@Injectable()
export class Journal implements BeforeApplicationShutdown {
  readonly #written = new Subject<string>();
  #inMemory: (readonly [sessionId: string, entry: JournalEntry])[] = [];

  constructor(private readonly redis: DemoRedis) {
    redis.subscriber?.on('message', (_, sessionId) => this.#written.next(sessionId));
    redis.subscriber?.subscribe(CHANNEL).catch(() => undefined);
    answeredRequests.subscribe(({ sessionId, ...request }) => {
      if (sessionId) this.write(sessionId, { type: 'request', ...request }).catch(() => undefined);
    });
  }

  @OnSessionEvent(SessionEvent)
  record(event: SessionEvent): Promise<void> {
    const { id, type, at, sessionId, session, principalName, dataLost } = event;
    const previousSessionId = event instanceof SessionIdChangedEvent ? event.previousSessionId : undefined;
    const items = session.getAttributeOrDefault('items', []);
    return this.write(sessionId, { id, type, at, sessionId, previousSessionId, principalName, items, dataLost });
  }

  async write(sessionId: string, details: Partial<JournalEntry> & { readonly type: string }): Promise<void> {
    const entry = { id: randomUUID(), at: Date.now(), instance: environment.instance, ...details };
    const key = `${CHANNEL}:${sessionId}`;
    const writing = this.redis.client?.multi().xadd(key, 'MAXLEN', REMEMBERED, '*', 'entry', JSON.stringify(entry));
    await writing?.expire(key, SECONDS_KEPT).publish(CHANNEL, sessionId).exec();
    if (writing) return;
    this.#inMemory = [...this.#inMemory, [sessionId, entry] as const].slice(-REMEMBERED);
    this.#written.next(sessionId);
  }

  /**
   * Yields the entries of a session, including those under its id before the sign-in: first the existing ones, then all
   * that follow, such as those of an order from before.
   */
  of(sessionId: string): Observable<JournalEntry> {
    const ids = new Set<string>();
    return this.#written.pipe(
      filter((id) => ids.has(id)),
      startWith(sessionId),
      concatMap(() => this.#history(sessionId, ids)),
      concatMap((entries) => entries),
      distinct(({ id }) => id),
    );
  }

  /** Ends the event streams, which would keep the server from closing. */
  beforeApplicationShutdown(): void {
    this.#written.complete();
  }

  /**
   * Follows ids back from the current one, never forward. A client that only knows an id from before the sign-in does
   * not see the session after it. Adds the ids to `ids`.
   */
  async #history(sessionId: string, ids: Set<string>): Promise<JournalEntry[]> {
    ids.add(sessionId);
    const own = await this.read(sessionId);
    const before = own.find(({ type }) => type === 'id-changed')?.['previousSessionId'];
    return typeof before === 'string' ? [...(await this.#history(before, ids)), ...own] : own;
  }

  /** Returns what was written under one id. */
  async read(sessionId: string): Promise<JournalEntry[]> {
    const written = await this.redis.client?.xrange(`${CHANNEL}:${sessionId}`, '-', '+');
    if (written) return written.map(([, [, text = '{}']]) => JSON.parse(text) as JournalEntry);
    return this.#inMemory.flatMap(([of, entry]) => (of === sessionId ? [entry] : []));
  }
}
