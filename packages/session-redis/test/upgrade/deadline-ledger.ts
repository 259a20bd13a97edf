import { groupedBy } from '../../../redis-events/src/partitions/partitions.js';
import type { Answer } from './instance.js';

export type DeadlineOperation =
  | { readonly call: 'schedule'; readonly key: string; readonly data: string; readonly seconds: number }
  | { readonly call: 'reschedule'; readonly key: string; readonly seconds: number }
  | { readonly call: 'cancel'; readonly key: string };

/** A deadline, as a handler has heard it. */
export interface HeardDeadline {
  readonly key: string;
  readonly data: string;
}

interface KnownDeadline {
  readonly key: string;
  /** It may come while the test still acts on it. */
  isShort: boolean;
  fate: 'fires' | 'never' | 'perhaps';
}

const LONG = 60 * 60;
const random = (most: number) => Math.floor(Math.random() * most);

/** What was done to deadlines, so that it is known which of them must have come. */
export class DeadlineLedger {
  /** All that were scheduled, by their data. */
  readonly #all = new Map<string, KnownDeadline>();
  /** The data of the one that waits under a key, or has come. */
  readonly #last = new Map<string, string>();
  readonly #idle: string[];

  constructor(keys: number) {
    this.#idle = Array.from({ length: keys }, (_, i) => `order-${i}`);
  }

  get size(): number {
    return this.#all.size;
  }

  /** The next operation, on a key that no other operation is on; undefined where there is none. */
  next(): DeadlineOperation | undefined {
    if (this.#idle.length === 0) return undefined;
    const place = random(this.#idle.length);
    const key = this.#idle[place]!;
    this.#idle[place] = this.#idle.at(-1)!;
    this.#idle.pop();
    const chance = random(4);
    const seconds = random(3) === 0 ? 1 + random(10) : LONG;
    if (chance === 0) return { call: 'cancel', key };
    if (chance === 1) return { call: 'reschedule', key, seconds };
    const data = `data-${this.#all.size}`;
    this.#all.set(data, { key, isShort: seconds < LONG, fate: 'perhaps' });
    return { call: 'schedule', key, data, seconds };
  }

  /** @returns what is wrong with the answer */
  note(operation: DeadlineOperation, answer: Answer): string | undefined {
    const { key } = operation;
    const last = this.#all.get(this.#last.get(key) ?? '');
    if (typeof answer === 'string') return this.#noteUnknown(last);
    const [value] = answer;
    if (!isRight(operation, last, value)) {
      return `${JSON.stringify(operation)} was answered ${JSON.stringify(value)}, where ${JSON.stringify(last)} was last`;
    }
    if (last && (value === 'replaced' || value === 'cancelled')) last.fate = 'never';
    if (last && value === 'moved') last.isShort ||= (operation as { seconds: number }).seconds < LONG;
    if (operation.call === 'schedule') {
      this.#all.get(operation.data)!.fate = 'fires';
      this.#last.set(key, operation.data);
    } else if (value !== 'moved') this.#last.delete(key);
    this.#idle.push(key);
    return undefined;
  }

  /** Nobody uses its key again. */
  #noteUnknown(last: KnownDeadline | undefined): undefined {
    if (last) last.fate = 'perhaps';
  }

  /** What is wrong with the deadlines that were heard, when all of them have come. */
  problems(heard: readonly HeardDeadline[]): string[] {
    const byData = groupedBy(heard, ({ data }) => data);
    return [...this.#all]
      .filter(([data, { fate }]) => {
        const times = byData.get(data)?.length ?? 0;
        return fate === 'perhaps' ? times > 1 : times !== (fate === 'fires' ? 1 : 0);
      })
      .map(([data, known]) => `${data}: ${JSON.stringify(known)} was heard ${byData.get(data)?.length ?? 0} times`);
  }
}

/** One that is short may have come before the operation. */
function isRight({ call }: DeadlineOperation, last: KnownDeadline | undefined, value: unknown): boolean {
  const hasCome = last === undefined || last.isShort;
  if (call === 'schedule') return value === 'replaced' ? last !== undefined : value === 'scheduled' && hasCome;
  const done = call === 'cancel' ? 'cancelled' : 'moved';
  return value === done ? last !== undefined : (value === 'fired' || value === 'none') && hasCome;
}
