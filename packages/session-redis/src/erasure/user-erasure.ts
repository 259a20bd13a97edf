import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import { ID_PATTERN } from '../keys/id-pattern.js';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import { scannedKeys } from '../repartitioning/scanned-keys.js';
import { hashOfPrincipal } from '../repository/hashed-indexes.js';
import { ErasureScripts, type SessionToErase } from '../scripts/erasure/erasure.scripts.js';
import { EventStreamScripts } from '../scripts/stream/event-stream.scripts.js';
import { fieldOf, parsed, type StreamEntry, toStreamEntry } from '../scripts/stream/stream-entry.js';
import { SESSION_ENTRIES } from '../session-events/session-event-producer.js';

/** How what is kept of a user is erased. */
export interface EraseOptions {
  /** Only counts. */
  readonly isRehearsal: boolean;
  readonly signal: AbortSignal;
  /** Receives how many keys and events have been looked at, from time to time. */
  readonly onProgress: (looked: number) => void;
}

/** What was found of a user, and erased. */
export interface Erased {
  /** Sessions that were alive. */
  readonly live: number;
  /** Sessions that had ended, whose data was kept for handlers. */
  readonly ended: number;
  /** Events with the name or the data of the user. */
  readonly events: number;
  readonly deadLetters: number;
  /** Records of how many sessions the user has. */
  readonly ledgers: number;
}

const SESSION = new RegExp(`^sessions:(${ID_PATTERN})$`);
const IDS_PER_CALL = 50;
const EVENTS_PER_CALL = 100;
// A dead letter can have 256 KiB.
const LETTERS_PER_CALL = 10;
const FIELD = ATTRIBUTE_FIELD + PRINCIPAL_ATTRIBUTE;

/**
 * Erases what a namespace keeps of a user: sessions, also those that have ended and whose data was kept for handlers;
 * events and dead letters with the name or with the data. It finds the sessions by the index of principals, which is
 * not encrypted, and what has no session any more by the name itself.
 */
export class UserErasure {
  readonly #scripts: ErasureScripts;
  readonly #streams: EventStreamScripts;
  readonly #principal: { readonly hash: string; readonly text: string };
  readonly #erased = { live: 0, ended: 0, events: 0, deadLetters: 0, ledgers: 0 };
  readonly #ids = new Set<string>();
  #looked = 0;

  constructor(
    protected readonly client: Redis,
    protected readonly partitions: SessionPartitions,
    protected readonly name: string,
    protected readonly options: EraseOptions,
  ) {
    this.#scripts = new ErasureScripts(client);
    this.#streams = new EventStreamScripts(client, SESSION_ENTRIES);
    this.#principal = { hash: hashOfPrincipal(name), text: JSON.stringify(name) };
  }

  async run(): Promise<Erased> {
    // First the sessions: events and dead letters tell of them.
    for await (const { id, was } of this.eraseSessions()) {
      // A scan may find a key twice.
      if (!this.#ids.has(id)) this.#erased[was]++;
      this.#ids.add(id);
    }
    await this.#addFormerIds();
    for (const partition of this.partitions.all) {
      await this.#eraseLetters(partition);
      await this.#eraseEvents(partition);
      await this.#eraseLedger(partition);
    }
    return this.#erased;
  }

  /** Erases the sessions of the user, unless it only counts, and says which they are. */
  protected async *eraseSessions(): AsyncIterable<SessionToErase> {
    for await (const keys of scannedKeys(this.client, this.partitions, 'sessions:*')) {
      for (const partition of this.partitions.all) {
        const its = keys.filter((key) => key.partition === partition);
        const ids = its.flatMap(({ name }) => SESSION.exec(name)?.[1] ?? []);
        yield* this.#eraseThose(partition, ids);
      }
    }
    if (this.options.isRehearsal) return;
    for (const partition of this.partitions.all) yield* this.#eraseListed(partition);
  }

  /** A scan may miss a session that is rotated meanwhile, but the index lists it by the id that it has then. */
  async *#eraseListed(partition: SessionKeys): AsyncIterable<SessionToErase> {
    const index = partition.index(PRINCIPAL_NAME_INDEX_NAME, this.#principal.hash);
    for (let hasFound = true; hasFound;) {
      hasFound = false;
      const ids = await this.client.zrange(index, '0', '-1').catch(noneIfStray);
      for await (const found of this.#eraseThose(partition, ids)) {
        hasFound = true;
        yield found;
      }
    }
  }

  /** Erases those of some sessions that are of the user, unless it only counts. */
  async *#eraseThose(partition: SessionKeys, ids: readonly string[]): AsyncIterable<SessionToErase> {
    for (let i = 0; i < ids.length; i += IDS_PER_CALL) {
      const some = ids.slice(i, i + IDS_PER_CALL);
      yield* await this.#scripts.sessions(partition, some, this.#principal, !this.options.isRehearsal);
      this.look(some.length);
    }
  }

  /** Those that the sessions had before, as long as events or dead letters tell of it. */
  async #addFormerIds(): Promise<void> {
    const former = new Map<string, string>();
    // A move to another number of partitions can put the events of one session into several of them.
    for (const partition of this.partitions.all) {
      for await (const entry of this.#allIn(partition)) {
        const [id, previous] = [fieldOf(entry, 'session'), fieldOf(entry, 'previous')];
        if (id !== undefined && previous !== undefined) former.set(id, previous);
      }
    }
    // A set yields what is added meanwhile.
    for (const id of this.#ids) if (former.has(id)) this.#ids.add(former.get(id)!);
  }

  async #eraseEvents(partition: SessionKeys): Promise<void> {
    for await (const entries of this.#entriesOf(partition, partition.events, EVENTS_PER_CALL)) {
      const theirs = entries.filter((entry) => this.#isTheirs(entry)).map(({ position }) => position);
      this.#erased.events += theirs.length;
      if (theirs.length > 0 && !this.options.isRehearsal) await this.#scripts.events(partition, theirs);
    }
  }

  async #eraseLetters(partition: SessionKeys): Promise<void> {
    for await (const entries of this.#entriesOf(partition, partition.deadLetters, LETTERS_PER_CALL)) {
      for (const entry of entries.filter((each) => this.#isTheirs(each) || this.#isOfSession(each))) {
        this.#erased.deadLetters++;
        if (!this.options.isRehearsal) await this.#streams.discardDeadLetter(partition, entry.position);
      }
    }
  }

  async #eraseLedger(partition: SessionKeys): Promise<void> {
    const ledger = partition.ledger(this.#principal.hash);
    const { isRehearsal } = this.options;
    this.#erased.ledgers += await (isRehearsal ? this.client.exists(ledger) : this.client.unlink(ledger));
  }

  /** The events and the dead letters, which may be there for longer. */
  async *#allIn(partition: SessionKeys): AsyncIterable<StreamEntry> {
    for await (const entries of this.#entriesOf(partition, partition.events, EVENTS_PER_CALL)) yield* entries;
    for await (const entries of this.#entriesOf(partition, partition.deadLetters, LETTERS_PER_CALL)) yield* entries;
  }

  async *#entriesOf(partition: SessionKeys, stream: string, count: number): AsyncIterable<StreamEntry[]> {
    let from = '-';
    for (;;) {
      const entries = await this.client.xrange(stream, from, '+', 'COUNT', count);
      if (entries.length === 0) return;
      yield entries.map((entry) => toStreamEntry(partition, entry));
      this.look(entries.length);
      from = `(${entries.at(-1)![0]}`;
    }
  }

  /** Whether it has the name, or the data of a session of the user. Other events have ids alone. */
  #isTheirs(entry: StreamEntry): boolean {
    const [who, data] = [recordIn(entry, 'who'), recordIn(entry, 'data')];
    if (who === undefined && data === undefined) return false;
    return this.#isOfSession(entry) || [who, data].some((each) => each !== undefined && this.names(each));
  }

  #isOfSession(entry: StreamEntry): boolean {
    return ['session', 'previous'].some((name) => this.#ids.has(fieldOf(entry, name) ?? ''));
  }

  /** Whether the data of a session is that of the user. */
  protected names(fields: Readonly<Record<string, unknown>>): boolean {
    const { hash, text } = this.#principal;
    // The serializer may write anything around it.
    if (hasText(String(fields[FIELD]), text)) return true;
    const indexes = parsed(String(fields['index']));
    return (
      Array.isArray(indexes) && indexes.some(([name, value]) => name === PRINCIPAL_NAME_INDEX_NAME && value === hash)
    );
  }

  protected look(count: number): void {
    this.options.signal.throwIfAborted();
    this.#looked += count;
    this.options.onProgress(this.#looked);
  }
}

/** A key of another type in the place of the index lists nobody. */
function noneIfStray(error: unknown): string[] {
  if (isReply(error, 'WRONGTYPE')) return [];
  throw error;
}

/** Whether a text has a JSON string, and not just the end of another one that has a quotation mark in it. */
function hasText(text: string, json: string): boolean {
  let at = text.indexOf(json);
  while (at > 0 && text[at - 1] === '\\') at = text.indexOf(json, at + 1);
  return at >= 0;
}

/** Undefined without anything in it. */
function recordIn(entry: StreamEntry, name: string): Record<string, unknown> | undefined {
  const value = parsed(fieldOf(entry, name));
  return value instanceof Object && Object.keys(value).length > 0 ? (value as Record<string, unknown>) : undefined;
}
