import { StoredAttributes } from './stored-attributes.js';

/** A change of one attribute: the text to store, or null to remove it. */
export type AttributeChanges = ReadonlyMap<string, string | null>;

interface Entry {
  value: unknown;
  /** Set by the application since the last save; otherwise only read. */
  assigned: boolean;
  /** For an object that was read: how its value is encoded, to notice that it was changed in place. */
  baseline: string | undefined;
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

  /** The value the store has, as far as this session knows; a fresh object that nobody watches. */
  storedValue(name: string): unknown {
    return this.#stored.decode(name);
  }

  /** The text of that value. */
  storedText(name: string): string | undefined {
    return this.#stored.text(name);
  }

  /** @throws SessionAttributeError when the value cannot be stored: here, where the caller can be seen in the stack */
  set(name: string, value: unknown): void {
    assertName(name);
    const removed = value === undefined || value === null;
    if (!removed) this.#stored.encode(name, value);
    this.#entries.set(name, { value: removed ? undefined : value, assigned: true, baseline: undefined });
  }

  encode(name: string, value: unknown): string {
    return this.#stored.encode(name, value);
  }

  /** Whether the application has set or changed it since the last save. */
  isChanged(name: string): boolean {
    const entry = this.#entries.get(name);
    return entry !== undefined && (entry.assigned || this.#change(name, entry) !== undefined);
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
      if (entry.assigned && this.#textOf(name, entry) === change) entry.assigned = false;
      entry.baseline = isObject(entry.value) ? (change ?? undefined) : undefined;
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
    const entry = { value, assigned: false, baseline: this.#baselineOf(name, value) };
    if (value !== undefined) this.#entries.set(name, entry);
    return entry;
  }

  /**
   * Later compared with how we encode the value then, not with the stored text: another language may have written that
   * one differently, and its value must not be written back only because somebody read it.
   */
  #baselineOf(name: string, value: unknown): string | undefined {
    if (!isObject(value)) return undefined;
    try {
      return this.#stored.encode(name, value);
    } catch {
      // Others can store what we could not, such as 1e999, which we read as Infinity. Reading it must not fail.
      return undefined;
    }
  }

  #change(name: string, entry: Entry): string | null | undefined {
    if (entry.assigned) {
      const isMissing = entry.value === undefined && this.#stored.text(name) === undefined;
      return isMissing ? undefined : this.#textOf(name, entry);
    }
    if (entry.baseline === undefined) return undefined;
    const text = this.#textOf(name, entry);
    return text === entry.baseline ? undefined : text;
  }

  /** The text to store for it, null for its removal. */
  #textOf(name: string, entry: Entry): string | null {
    return entry.value === undefined ? null : this.#stored.encode(name, entry.value);
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
