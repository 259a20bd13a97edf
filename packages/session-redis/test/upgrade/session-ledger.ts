import { groupedBy } from '../../../redis-events/src/partitions/partitions.js';
import type { Answer } from './instance.js';

export type SessionOperation =
  | { readonly call: 'create'; readonly name: string; readonly seconds: number; readonly user: string | undefined }
  | { readonly call: 'save' | 'rotate'; readonly name: string; readonly id: string; readonly count: number }
  | {
      readonly call: 'signIn';
      readonly name: string;
      readonly id: string;
      readonly count: number;
      readonly user: string;
    }
  | { readonly call: 'delete' | 'read'; readonly name: string; readonly id: string };

/** An event of a session, as a handler has heard it. Only an end is sure to have the data. */
export interface HeardEvent {
  readonly type: string;
  readonly id: string;
  readonly name?: string;
  readonly count?: number;
}

interface KnownSession {
  /** Nobody uses it, so it runs out soon. */
  readonly isShort: boolean;
  id: string;
  count: number;
  /** The events that it must have before its end: the type and the id. */
  readonly events: string[];
  /** The types of those that it may have. */
  perhaps: readonly string[];
  /** It must have one of these: the type and the count. */
  ends: readonly string[];
}

const LONG = 30 * 60;
const LONGEST_SHORT = 30;
const random = (most: number) => Math.floor(Math.random() * most);

/** What was done to sessions, so that it is known what each of them is, and which events it must have. */
export class SessionLedger {
  readonly #all = new Map<string, KnownSession>();
  /** The name by each id that it has had. */
  readonly #names = new Map<string, string>();
  /** How many events there may be under an id that is not known. */
  #unknown = 0;
  /** The names of those that wait for an operation. */
  readonly #idle: string[] = [];

  constructor(private readonly most: number) {}

  get size(): number {
    return this.#all.size;
  }

  /** The next operation: a new session, or one on a session that no other operation is on. */
  next(): SessionOperation {
    const isNew = this.#all.size < this.most && (this.#idle.length < 100 || random(3) === 0);
    return isNew || this.#idle.length === 0 ? this.#create() : this.#change();
  }

  #create(): SessionOperation {
    const name = `session-${this.#all.size}`;
    const isShort = random(5) === 0;
    this.#all.set(name, { isShort, id: '', count: 0, events: [], perhaps: [], ends: ['expired 0'] });
    const seconds = isShort ? 1 + random(LONGEST_SHORT) : LONG;
    return { call: 'create', name, seconds, user: random(2) === 0 ? `user-${random(500)}` : undefined };
  }

  #change(): SessionOperation {
    const place = random(this.#idle.length);
    const name = this.#idle[place]!;
    this.#idle[place] = this.#idle.at(-1)!;
    this.#idle.pop();
    const { id, count: last } = this.#all.get(name)!;
    const count = last + 1;
    const chance = random(20);
    if (chance < 1) return { call: 'delete', name, id };
    if (chance < 5) return { call: 'read', name, id };
    if (chance < 7) return { call: 'rotate', name, id, count };
    if (chance < 9) return { call: 'signIn', name, id, count, user: `user-${random(500)}` };
    return { call: 'save', name, id, count };
  }

  /** @returns what is wrong with the answer */
  note(operation: SessionOperation, answer: Answer): string | undefined {
    const session = this.#all.get(operation.name)!;
    if (typeof answer === 'string') {
      // It has happened or not. Nobody uses the session again.
      session.perhaps = typesAfter(operation);
      this.#unknown += session.perhaps.length;
      session.ends = [...session.ends, endAfter(operation, session)];
      return undefined;
    }
    const [value] = answer;
    if (!isRight(operation, session, value))
      return `${JSON.stringify(operation)} was answered ${JSON.stringify(value)}`;
    if (typeof value === 'string') {
      session.id = value;
      this.#names.set(value, operation.name);
    }
    session.events.push(...typesAfter(operation).map((type) => `${type} ${session.id}`));
    session.ends = [endAfter(operation, session)];
    if ('count' in operation) session.count = operation.count;
    if (operation.call !== 'delete' && !session.isShort) this.#idle.push(operation.name);
    return undefined;
  }

  /** A read of each session that nothing else is done to. */
  reads(): SessionOperation[] {
    return this.#idle.splice(0).map((name) => ({ call: 'read', name, id: this.#all.get(name)!.id }));
  }

  /** What is wrong with the events that were heard, when all sessions have ended, or all that nobody used. */
  problems(heard: readonly HeardEvent[], which: 'all' | 'short' = 'all'): string[] {
    const byName = groupedBy(heard, ({ name, id }) => name ?? this.#names.get(id) ?? 'nobody knows');
    const strangers = byName.get('nobody knows')?.length ?? 0;
    if (strangers > this.#unknown)
      return [`${strangers} events of unknown sessions, instead of ${this.#unknown} at most`];
    return [...this.#all]
      .filter(([, { isShort }]) => isShort || which === 'all')
      .filter(([name, session]) => !isReported(session, byName.get(name) ?? []))
      .map(([name, session]) => `${name}: ${JSON.stringify(session)} has ${JSON.stringify(byName.get(name))}`);
  }
}

function isRight(operation: SessionOperation, { count }: KnownSession, value: unknown): boolean {
  if (operation.call === 'delete') return value === true;
  if (operation.call === 'read') return value === count;
  return typeof value === 'string';
}

/** The types of the events of an operation, before those of the end. */
function typesAfter(operation: SessionOperation): string[] {
  const { call } = operation;
  if (call === 'create') return operation.user === undefined ? ['created'] : ['created', 'signed-in'];
  if (call === 'rotate') return ['id-changed'];
  return call === 'signIn' ? ['id-changed', 'signed-in'] : [];
}

/** The end of a session to which nothing else happens. */
function endAfter(operation: SessionOperation, { count }: KnownSession): string {
  if (operation.call === 'delete') return `deleted ${count}`;
  return `expired ${'count' in operation ? operation.count : count}`;
}

/**
 * Each event that it must have, once, and one end with what was saved last; no event of a session that was not created.
 */
function isReported({ events, perhaps, ends }: KnownSession, heard: readonly HeardEvent[]): boolean {
  if (heard.length === 0) return events.length === 0;
  const [ended, others] = [heard.filter(isEnd), heard.filter((event) => !isEnd(event))];
  const isRightEnd = ended.length === 1 && ends.includes(`${ended[0]!.type} ${ended[0]!.count}`);
  const all = others.map(({ type, id }) => `${type} ${id}`);
  const further = others.filter((_, i) => !events.includes(all[i]!)).map(({ type }) => type);
  return (
    isRightEnd &&
    new Set(all).size === all.length &&
    events.every((each) => all.includes(each)) &&
    further.every((type) => perhaps.includes(type)) &&
    new Set(further).size === further.length
  );
}

function isEnd({ type }: HeardEvent): boolean {
  return type === 'expired' || type === 'deleted';
}
