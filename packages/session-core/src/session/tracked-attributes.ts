import type { AttributeChanges } from './session-change.js';
import { StoredAttributes } from './stored-attributes.js';

interface Entry {
  value: unknown;
  /** Set by the application since the last save; otherwise only read. */
  assigned: boolean;
  /**
   * How it was encoded when it was set, read or last saved, to notice an object that was changed in place since; null
   * for one that was removed. What is only read and cannot change in place, or be encoded at all, has none.
   */
  text: string | null | undefined;
}

/** Attributes that remember which of them must be written: those that were set, and those changed in place. */
export class TrackedAttributes {
  readonly #stored: StoredAttributes;
  /** Only what the application has read or set; the others stay undecoded. */
  readonly #entries = new Map<string, Entry>();

  constructor(stored: StoredAttributes) {
    this.#stored = stored;
  }

  get names(): string[] {
    const names = new Set(this.#stored.names);
    for (const [name, entry] of this.#entries) {
      if (entry.value === undefined) names.delete(name);
      else names.add(name);
    }
    return [...names];
  }

  get(name: string): unknown {
    return this.#read(name).value;
  }

  /** The value for the library's own reads: never throws, and an object is not watched for changes in place. */
  peek(name: string): unknown {
    const known = this.#entries.get(name);
    return known ? known.value : this.#stored.peek(name);
  }

  /** The value the store has, as far as this session knows; a fresh object that nobody watches. */
  storedValue(name: string): unknown {
    return this.#stored.decode(name);
  }

  /** The same for the library's own reads: never throws. */
  peekStored(name: string): unknown {
    return this.#stored.peek(name);
  }

  /** The text of that value. */
  storedText(name: string): string | undefined {
    return this.#stored.text(name);
  }

  /** @throws SessionAttributeError when the value cannot be stored: here, where the caller can be seen in the stack */
  set(name: string, value: unknown): void {
    assertName(name);
    const removed = value === undefined || value === null;
    const text = removed ? null : this.#stored.encode(name, value);
    this.#entries.set(name, { value: removed ? undefined : value, assigned: true, text });
  }

  encode(name: string, value: unknown): string {
    return this.#stored.encode(name, value);
  }

  /** Whether the application has set or changed it since the last save. */
  isChanged(name: string): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (entry.assigned || this.#changeInPlace(name, entry) !== undefined);
  }

  /** Whether `changes()` would name any. */
  get hasChanges(): boolean {
    const entries = [...this.#entries];
    // Of those that were set it is known without encoding anything.
    return (
      entries.some(([name, entry]) => this.#isWritable(name, entry)) ||
      entries.some(([name, entry]) => this.#changeInPlace(name, entry) !== undefined)
    );
  }

  /** What has to be written, by name. */
  changes(): Map<string, string | null> {
    const changes = new Map<string, string | null>();
    for (const [name, entry] of this.#entries) {
      const change = this.#change(name, entry);
      if (change !== undefined) changes.set(name, change);
    }
    return changes;
  }

  /** Takes note that the store has written these. What the application changed since `changes()` stays to be written. */
  saved(changes: AttributeChanges): void {
    for (const [name, change] of changes) {
      this.#stored.replace(name, change ?? undefined);
      const entry = this.#entries.get(name);
      if (!entry) continue;
      // Set again in the meantime: that is another entry, with a text of its own.
      if (entry.assigned && entry.text !== change) continue;
      entry.assigned = false;
      entry.text = change;
    }
  }

  /** Takes over what the store turned out to have, or has just been given, unless the application has set another. */
  refresh(name: string, text: string | undefined): void {
    const isOwn = this.isChanged(name);
    this.#stored.replace(name, text);
    if (!isOwn) this.#entries.delete(name);
  }

  #read(name: string): Entry {
    const known = this.#entries.get(name);
    if (known) return known;
    const value = this.#stored.decode(name);
    const entry = { value, assigned: false, text: this.#textAsRead(name, value) };
    if (value !== undefined) this.#entries.set(name, entry);
    return entry;
  }

  /**
   * Later compared with how we encode the value then, not with the stored text: another language may have written that
   * one differently, and its value must not be written back only because somebody read it.
   */
  #textAsRead(name: string, value: unknown): string | undefined {
    if (!isObject(value)) return undefined;
    try {
      return this.#stored.encode(name, value);
    } catch {
      // Others can store what we could not, such as 1e999, which we read as Infinity. Reading it must not fail.
      return undefined;
    }
  }

  /** The text to store for it, null for its removal; undefined when nothing has to be written. */
  #change(name: string, entry: Entry): string | null | undefined {
    if (!entry.assigned) return this.#changeInPlace(name, entry);
    if (!this.#isWritable(name, entry)) return undefined;
    if (isObject(entry.value)) entry.text = this.#stored.encode(name, entry.value);
    return entry.text;
  }

  /** Whether it was set to anything; to remove what the store does not have is nothing. */
  #isWritable(name: string, entry: Entry): boolean {
    return entry.assigned && (entry.text !== null || this.#stored.text(name) !== undefined);
  }

  /** The text of an object that was changed since it was read or saved. */
  #changeInPlace(name: string, { assigned, value, text }: Entry): string | undefined {
    if (assigned || text === undefined || !isObject(value)) return undefined;
    const current = this.#stored.encode(name, value);
    return current === text ? undefined : current;
  }
}

/** @throws TypeError for what could not be read back under the same name: half of a surrogate pair is no UTF-8 */
export function assertName(name: unknown): void {
  if (typeof name !== 'string' || name === '' || /\p{Surrogate}/u.test(name)) {
    throw new TypeError('The name of a session attribute is a non-empty string of well-formed Unicode');
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
