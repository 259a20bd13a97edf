import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import {
  EventStreamScripts,
  fieldOf,
  ifStray,
  parsed,
  type StreamEntry,
  toStreamEntry,
} from '@nest-session/redis-events/internal';
import {
  ATTRIBUTE_FIELD,
  batchesOf,
  hashOfPrincipal,
  ID_PATTERN,
  SESSION_ENTRIES,
  type SessionKeys,
  type SessionPartitions,
} from '@nest-session/redis/internal';
import { scannedKeys, streamPages } from '../repartitioning/scanned-keys.js';
import { ErasureScripts, type SessionToErase } from '../scripts/erasure/erasure.scripts.js';

export interface EraseOptions {
  readonly isRehearsal: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (looked: number) => void;
}

/** Whose data it is; unknown: of nobody, or encrypted. */
export type Whose = 'theirs' | 'another' | 'unknown';

const SESSION = new RegExp(`^sessions:(${ID_PATTERN})$`);
const IDS_PER_CALL = 50;
// A dead letter can have 256 KiB.
const PER_CALL = { events: 100, deadLetters: 10 };
const FIELD = ATTRIBUTE_FIELD + PRINCIPAL_ATTRIBUTE;

/** Finds sessions by their index of principals, which is not encrypted, and what is left of others by the name. */
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

  async run() {
    // First the sessions: events and dead letters tell of them.
    for await (const { id, was } of this.eraseSessions()) {
      // A scan may find a key twice.
      if (!this.#ids.has(id)) this.#erased[was]++;
      this.#ids.add(id);
    }
    await this.#addOtherIds();
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
      const ids = await this.client.zrange(index, '0', '-1').catch(ifStray([]));
      for await (const found of this.#eraseThose(partition, ids)) {
        hasFound = true;
        yield found;
      }
    }
  }

  async *#eraseThose(partition: SessionKeys, ids: readonly string[]): AsyncIterable<SessionToErase> {
    for (const some of batchesOf(ids, IDS_PER_CALL)) {
      yield* await this.#scripts.sessions(partition, some, this.#principal, !this.options.isRehearsal);
      this.look(some.length);
    }
  }

  /** Of sessions that are gone, and those that sessions had before, as long as events or dead letters tell of them. */
  async #addOtherIds(): Promise<void> {
    const former = new Map<string, string>();
    const ofOthers = new Set<string>();
    const note = (entry: StreamEntry) => {
      const [id, previous] = [fieldOf(entry, 'session'), fieldOf(entry, 'previous')];
      if (id === undefined) return;
      if (previous !== undefined) former.set(id, previous);
      const principals = this.#principalsIn(entry);
      if (principals.includes('theirs')) this.#ids.add(id);
      if (principals.includes('another')) ofOthers.add(id);
    };
    // A move to another number of partitions can put the events of one session into several of them. Dead letters may
    // be there for longer.
    for (const partition of this.partitions.all) {
      for (const stream of ['events', 'deadLetters'] as const) {
        for await (const entries of this.#entriesOf(partition, stream)) entries.forEach(note);
      }
    }
    // A set yields what is added meanwhile.
    for (const id of this.#ids) {
      const previous = former.get(id);
      // Somebody may sign in where another user was signed in.
      if (previous !== undefined && !ofOthers.has(previous)) this.#ids.add(previous);
    }
  }

  async #eraseEvents(partition: SessionKeys): Promise<void> {
    for await (const entries of this.#entriesOf(partition, 'events')) {
      // Others have ids alone.
      const withRecords = entries.filter((entry) => recordsIn(entry).length > 0);
      const theirs = withRecords.filter((entry) => this.#isTheirs(entry)).map(({ position }) => position);
      this.#erased.events += theirs.length;
      if (theirs.length > 0 && !this.options.isRehearsal) await this.#scripts.events(partition, theirs);
    }
  }

  async #eraseLetters(partition: SessionKeys): Promise<void> {
    for await (const entries of this.#entriesOf(partition, 'deadLetters')) {
      for (const entry of entries.filter((each) => this.#isTheirs(each))) {
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

  async *#entriesOf(partition: SessionKeys, stream: 'events' | 'deadLetters'): AsyncIterable<StreamEntry[]> {
    const read = (from: string) => this.client.xrange(partition[stream], from, '+', 'COUNT', PER_CALL[stream]);
    for await (const page of streamPages(read)) {
      yield page.map((entry) => toStreamEntry(partition, entry));
      this.look(page.length);
    }
  }

  /** Whether it has the name, or is about a session of the user; not where another user had it before. */
  #isTheirs(entry: StreamEntry): boolean {
    const principals = this.#principalsIn(entry);
    if (principals.includes('theirs')) return true;
    const isOfSession = ['session', 'previous'].some((name) => this.#ids.has(fieldOf(entry, name) ?? ''));
    return isOfSession && !principals.includes('another');
  }

  #principalsIn(entry: StreamEntry): readonly Whose[] {
    return recordsIn(entry).map((fields) => this.whose(fields));
  }

  protected whose(fields: Readonly<Record<string, unknown>>): Whose {
    const { hash, text } = this.#principal;
    const stored = String(fields[FIELD]);
    // The serializer may write anything around it.
    if (hasText(stored, text)) return 'theirs';
    const indexes = parsed(String(fields['index']));
    const indexed =
      Array.isArray(indexes) && indexes.find((each) => Array.isArray(each) && each[0] === PRINCIPAL_NAME_INDEX_NAME);
    if (indexed) return indexed[1] === hash ? 'theirs' : 'another';
    return typeof parsed(stored) === 'string' ? 'another' : 'unknown';
  }

  protected look(count: number): void {
    this.options.signal.throwIfAborted();
    this.#looked += count;
    this.options.onProgress(this.#looked);
  }
}

/** Whether a text has a JSON string, and not just the end of another one that has a quotation mark in it. */
function hasText(text: string, json: string): boolean {
  let at = text.indexOf(json);
  while (at > 0 && text[at - 1] === '\\') at = text.indexOf(json, at + 1);
  return at >= 0;
}

/** Who signed in, and the data of the session; none without anything in it. */
function recordsIn(entry: StreamEntry): Record<string, unknown>[] {
  const records = ['who', 'data'].map((name) => parsed(fieldOf(entry, name)));
  return records.filter(
    (record): record is Record<string, unknown> => record instanceof Object && Object.keys(record).length > 0,
  );
}
